#include "yoke/lab/gid_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/text.h"

namespace yoke::lab {
namespace {

// Numbers of `digits` hexadecimal digits with a separator between, as many as there must be; nothing otherwise.
std::optional<std::vector<unsigned>> parse_groups(std::string_view text, std::size_t count, std::size_t digits) {
  std::vector<unsigned> groups;
  for (const std::string& part : split(text, ':')) {
    unsigned value = 0;
    const auto [rest, failure] = std::from_chars(part.data(), part.data() + part.size(), value, 16);
    if (part.size() != digits || failure != std::errc{} || rest != part.data() + part.size()) return std::nullopt;
    groups.push_back(value);
  }
  if (groups.size() != count) return std::nullopt;
  return groups;
}

constexpr std::size_t kMaxPairs = kMaxGidSlots / 2;

// The addresses by pair of slots: pair p is slots 2p (v1) and 2p + 1 (v2). Entries are always added and removed as
// pairs, and v1 entries never drift: so the v1 entries of a table tell where each address belongs.
std::vector<Gid> pairs_of(const GidTable& table, const std::vector<Gid>& kept) {
  std::vector<Gid> pairs(std::max<std::size_t>(1, table.size() / 2));
  for (std::size_t pair = 1; pair < pairs.size(); ++pair) {
    const GidSlot& entry = table[2 * pair];
    const bool stays =
        entry.version == RoceVersion::kV1 && std::find(kept.begin(), kept.end(), entry.gid) != kept.end();
    const bool is_first = std::find(pairs.begin(), pairs.end(), entry.gid) == pairs.end();
    if (stays && is_first) pairs[pair] = entry.gid;
  }
  return pairs;
}

std::optional<std::size_t> find_pair(const std::vector<Gid>& pairs, const Gid& gid) {
  const auto found = std::find(pairs.begin() + 1, pairs.end(), gid);
  if (found == pairs.end()) return std::nullopt;
  return static_cast<std::size_t>(found - pairs.begin());
}

// Where the table has the v2 entry of this address, when that is behind its place.
std::optional<std::size_t> find_drifted(const GidTable& table, const Gid& gid, std::size_t place) {
  for (std::size_t slot = place + 1; slot < table.size(); ++slot) {
    if (table[slot].gid == gid && table[slot].version == RoceVersion::kV2) return slot;
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.bytes.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.bytes[i], gid.bytes[i + 1]);
  }
  return text;
}

std::optional<Gid> parse_gid(std::string_view text) {
  const auto groups = parse_groups(text, 8, 4);
  if (!groups) return std::nullopt;
  Gid gid;
  for (std::size_t i = 0; i < 8; ++i) {
    gid.bytes[2 * i] = static_cast<std::uint8_t>((*groups)[i] >> 8);
    gid.bytes[2 * i + 1] = static_cast<std::uint8_t>((*groups)[i]);
  }
  return gid;
}

std::string to_string(const Mac& mac) { return fmt::format("{:02x}", fmt::join(mac, ":")); }

std::optional<Mac> parse_mac(std::string_view text) {
  const auto groups = parse_groups(text, 6, 2);
  if (!groups) return std::nullopt;
  Mac mac;
  for (std::size_t i = 0; i < mac.size(); ++i) mac[i] = static_cast<std::uint8_t>((*groups)[i]);
  return mac;
}

Gid link_local_gid(const Mac& mac) {
  const auto first = static_cast<std::uint8_t>(mac[0] ^ 2);
  return {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, first, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

Gid mapped_gid(Ipv4 address) {
  Gid gid{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};
  for (int i = 0; i < 4; ++i) {
    gid.bytes[static_cast<std::size_t>(12 + i)] = static_cast<std::uint8_t>(address.value >> (24 - 8 * i));
  }
  return gid;
}

std::string_view to_string(RoceVersion version) { return version == RoceVersion::kV1 ? "IB/RoCE v1" : "RoCE v2"; }

GidTable next_gid_table(const GidTable& current, const GidSources& sources) {
  const Gid own = sources.mac ? link_local_gid(*sources.mac) : Gid{};
  std::vector<Gid> wanted;
  for (const Ipv4 address : sources.ipv4) wanted.push_back(mapped_gid(address));
  for (const Gid& gid : sources.ipv6) {
    if (gid != own) wanted.push_back(gid);
  }

  std::vector<Gid> pairs = pairs_of(current, wanted);
  pairs[0] = own;
  const std::optional<Gid> drifting =
      sources.drift && !sources.ipv4.empty() ? std::optional(mapped_gid(sources.ipv4.front())) : std::nullopt;
  std::optional<std::size_t> drifted;  // its slot; no new address may take it
  if (const auto pair = drifting ? find_pair(pairs, *drifting) : std::nullopt) {
    drifted = find_drifted(current, *drifting, 2 * *pair + 1);
  }
  const auto is_free = [&](std::size_t pair) {
    return (pair >= pairs.size() || pairs[pair].empty()) && drifted != 2 * pair && drifted != 2 * pair + 1;
  };
  for (const Gid& gid : wanted) {
    if (find_pair(pairs, gid)) continue;
    std::size_t pair = 1;
    while (!is_free(pair)) ++pair;
    if (pair >= kMaxPairs) break;
    if (pair >= pairs.size()) pairs.resize(pair + 1);
    pairs[pair] = gid;
  }

  GidTable table(std::max({kMinGidSlots, current.size(), 2 * pairs.size()}));
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    table[2 * pair] = {pairs[pair], RoceVersion::kV1};
    table[2 * pair + 1] = {pairs[pair], RoceVersion::kV2};
  }
  if (const auto pair = drifting ? find_pair(pairs, *drifting) : std::nullopt) {
    std::size_t slot = drifted.value_or(2 * *pair + 2);
    while (slot < table.size() && !table[slot].gid.empty()) ++slot;
    if (slot >= table.size()) table.resize(slot + 1);
    table[slot] = {*drifting, RoceVersion::kV2};
    table[2 * *pair + 1] = {};
  }
  for (GidSlot& slot : table) {
    if (slot.gid.empty()) slot = {};
  }
  return table;
}

}  // namespace yoke::lab
