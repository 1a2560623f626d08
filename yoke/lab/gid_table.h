// The GID table of an RDMA port, as the kernel keeps it for RoCE (drivers/infiniband/core/roce_gid_mgmt.c): each
// address of the interface has two entries, RoCE v1 and behind it v2. Slots 0 and 1 hold the address made from the MAC
// address, always; the others come and go with the addresses. Pure: next_gid_table() answers the table that follows.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/ip.h"

namespace yoke::lab {

struct Gid {
  std::array<std::uint8_t, 16> bytes{};  // all zero: an empty slot
  friend auto operator<=>(const Gid&, const Gid&) = default;
  bool empty() const { return *this == Gid{}; }
};
std::string to_string(const Gid& gid);  // as sysfs: "fe80:0000:0000:0000:4ebb:47ff:fe0a:1000"
std::optional<Gid> parse_gid(std::string_view text);

using Mac = std::array<std::uint8_t, 6>;
std::string to_string(const Mac& mac);  // "4c:bb:47:0a:10:00"
std::optional<Mac> parse_mac(std::string_view text);

Gid link_local_gid(const Mac& mac);  // fe80:: and the EUI-64 of RFC 4291, appendix A
Gid mapped_gid(Ipv4 address);        // ::ffff:a.b.c.d

enum class RoceVersion { kV1, kV2 };
std::string_view to_string(RoceVersion version);  // as in gid_attrs/types

struct GidSlot {
  Gid gid;
  RoceVersion version = RoceVersion::kV1;  // means nothing while the slot is empty
  friend bool operator==(const GidSlot&, const GidSlot&) = default;
};
using GidTable = std::vector<GidSlot>;  // by index

struct GidSources {
  std::optional<Mac> mac;
  std::vector<Ipv4> ipv4;  // in the interface's order
  std::vector<Gid> ipv6;   // global and link-local; the one made from the MAC address is passed over
  // The fault: the v2 entry of the first IPv4 address is not behind its v1 entry, but in a later slot, as captured
  // (tests/fixtures/gid-drift). The slot it left stays empty.
  bool drift = false;
};

inline constexpr std::size_t kMinGidSlots = 16;   // what is written at least, so that empty slots can be seen
inline constexpr std::size_t kMaxGidSlots = 255;  // of mlx5; addresses beyond find no place, as in the kernel

// An address that stays keeps its index; a new one takes the first free pair of slots; one that goes frees its pair.
// The result is at least as long as `current`.
GidTable next_gid_table(const GidTable& current, const GidSources& sources);

}  // namespace yoke::lab
