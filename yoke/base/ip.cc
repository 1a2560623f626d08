#include "yoke/base/ip.h"

#include <fmt/format.h>

#include <charconv>

#include "yoke/base/check.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

std::uint32_t mask(int length) { return length == 0 ? 0 : ~std::uint32_t{0} << (32 - length); }

// A decimal number from 0 to `most` without sign or leading zeros ("010" would be octal to some programs).
Result<std::uint32_t> parse_decimal(std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc{} && rest == text.data() + text.size();
  if (!whole || value > most || (text.size() > 1 && text.front() == '0')) {
    return Unexpected(
        Error(ErrorCode::kInvalid, fmt::format("'{}' is not a number up to {}", printable(text, 40), most)));
  }
  return value;
}

}  // namespace

Ipv4Prefix Ipv4Prefix::network() const { return {{address.value & mask(length)}, length}; }

bool Ipv4Prefix::contains(Ipv4 other) const { return (address.value & mask(length)) == (other.value & mask(length)); }

std::uint64_t Ipv4Prefix::host_count() const {
  const std::uint64_t all = std::uint64_t{1} << (32 - length);
  return all > 2 ? all - 2 : 0;
}

Ipv4 Ipv4Prefix::host(std::uint32_t n) const {
  YOKE_CHECK(n >= 1 && n <= host_count(), "host {} of {}", n, to_string(*this));
  return {network().address.value + n};
}

bool overlap(const Ipv4Prefix& a, const Ipv4Prefix& b) {
  return a.length <= b.length ? a.contains(b.address) : b.contains(a.address);
}

std::string to_string(Ipv4 a) {
  return fmt::format("{}.{}.{}.{}", a.value >> 24, a.value >> 16 & 0xFF, a.value >> 8 & 0xFF, a.value & 0xFF);
}
std::string to_string(const Ipv4Prefix& prefix) {
  return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}

Result<Ipv4> parse_ipv4(std::string_view text) {
  const Unexpected failure(Error(ErrorCode::kInvalid, fmt::format("'{}' is not an IPv4 address", printable(text, 40)),
                                 "write it as in 192.168.100.1"));
  const std::vector<std::string> parts = split(text, '.');
  if (parts.size() != 4) return failure;
  Ipv4 address;
  for (const std::string& part : parts) {
    const Result<std::uint32_t> number = parse_decimal(part, 255);
    if (!number) return failure;
    address.value = address.value << 8 | *number;
  }
  return address;
}

Result<Ipv4Prefix> parse_ipv4_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return Unexpected(Error(ErrorCode::kInvalid, fmt::format("'{}' has no prefix length", printable(text, 40)),
                            "write it as in 192.168.100.0/24"));
  }
  return parse_ipv4(text.substr(0, slash)).and_then([&](Ipv4 address) -> Result<Ipv4Prefix> {
    const Result<std::uint32_t> length = parse_decimal(text.substr(slash + 1), 32);
    if (length) return Ipv4Prefix{address, static_cast<int>(*length)};
    return Unexpected(Error(ErrorCode::kInvalid,
                            fmt::format("'{}' has no prefix length from 0 to 32", printable(text, 40)),
                            "write it as in 192.168.100.0/24"));
  });
}

Document to_json(const Ipv4& address) { return Document::string(to_string(address)); }

void from_json(const Document& document, Ipv4& address) {
  const auto parsed = parse_ipv4(document.text);
  if (!is_text(document) || !parsed) refuse_field(document, "an IPv4 address", "write it as in 192.168.100.1");
  address = *parsed;
}

Document to_json(const Ipv4Prefix& prefix) { return Document::string(to_string(prefix)); }

void from_json(const Document& document, Ipv4Prefix& prefix) {
  const auto parsed = parse_ipv4_prefix(document.text);
  if (!is_text(document) || !parsed) {
    refuse_field(document, "an IPv4 address with its prefix length", "write it as in 192.168.100.0/24");
  }
  prefix = *parsed;
}

}  // namespace yoke
