// IPv4 addresses and networks as the fabric uses them: "192.168.100.1", "192.168.100.1/24", "192.168.100.0/24".
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "yoke/base/result.h"

namespace yoke {

struct Document;

struct Ipv4 {
  std::uint32_t value = 0;  // host byte order
  friend auto operator<=>(Ipv4, Ipv4) = default;
};

// An address with the length of its network's prefix. As a network its host bits are zero.
struct Ipv4Prefix {
  Ipv4 address;
  int length = 0;
  friend auto operator<=>(const Ipv4Prefix&, const Ipv4Prefix&) = default;

  Ipv4Prefix network() const;
  bool contains(Ipv4 other) const;
  std::uint64_t host_count() const;  // addresses that a host may have: without the network's own and broadcast
  Ipv4 host(std::uint32_t n) const;  // the n-th address, from 1
};

bool overlap(const Ipv4Prefix& a, const Ipv4Prefix& b);

std::string to_string(Ipv4 address);
std::string to_string(const Ipv4Prefix& prefix);
Result<Ipv4> parse_ipv4(std::string_view text);
Result<Ipv4Prefix> parse_ipv4_prefix(std::string_view text);  // host bits may be set

Document to_json(const Ipv4& address);
void from_json(const Document& document, Ipv4& address);
Document to_json(const Ipv4Prefix& prefix);
void from_json(const Document& document, Ipv4Prefix& prefix);

}  // namespace yoke
