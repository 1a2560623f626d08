#include "yoke/lab/gid_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace yoke::lab {
namespace {

const Mac kMac = {0x4c, 0xbb, 0x47, 0x0a, 0x10, 0x00};
const Gid kOwn = link_local_gid(kMac);

Ipv4 address(std::uint32_t last) { return {0xc0a86400 + last}; }
Gid global(std::uint8_t last) { return {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}}; }

// "own1 own2 .10/1 .10/2 - -": readable in a failure; empty slots at the end are left out.
std::string show(const GidTable& table) {
  std::string text;
  std::string empty;
  for (const GidSlot& slot : table) {
    if (slot.gid.empty()) {
      empty += " -";
      continue;
    }
    const std::string name = slot.gid == kOwn             ? "own"
                             : slot.gid.bytes[0] == 0x20  ? fmt::format("g{}", slot.gid.bytes[15])
                             : slot.gid.bytes[10] == 0xff ? fmt::format(".{}", slot.gid.bytes[15])
                                                          : to_string(slot.gid);
    text += empty + fmt::format(" {}/{}", name, slot.version == RoceVersion::kV1 ? 1 : 2);
    empty.clear();
  }
  return text.empty() ? text : text.substr(1);
}

TEST(Gid, IsWrittenAsInSysfsAndReadBack) {
  EXPECT_EQ(to_string(kOwn), "fe80:0000:0000:0000:4ebb:47ff:fe0a:1000");
  EXPECT_EQ(to_string(mapped_gid({0xc0a8640a})), "0000:0000:0000:0000:0000:ffff:c0a8:640a");
  EXPECT_EQ(parse_gid(to_string(kOwn)), kOwn);
  EXPECT_TRUE(parse_gid("0000:0000:0000:0000:0000:0000:0000:0000")->empty());
  for (const char* wrong :
       {"", "fe80::1", "fe80:0000:0000:0000:4ebb:47ff:fe0a:100", "0:0:0:0:0:0:0:0",
        "fe80:0000:0000:0000:4ebb:47ff:fe0a:10-0", "fe80:0000:0000:0000:4ebb:47ff:fe0a:1000:0000"}) {
    EXPECT_EQ(parse_gid(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(parse_mac("4c:bb:47:0a:10:00"), kMac);
  EXPECT_EQ(to_string(kMac), "4c:bb:47:0a:10:00");
  EXPECT_EQ(parse_mac("4c:bb:47:0a:10"), std::nullopt);
}

TEST(GidTable, HasTheOwnAddressAlwaysAndSixteenSlotsAtLeast) {
  const GidTable table = next_gid_table({}, {.mac = kMac});
  EXPECT_EQ(show(table), "own/1 own/2");
  EXPECT_EQ(table.size(), kMinGidSlots);
  EXPECT_EQ(next_gid_table(GidTable(40), {.mac = kMac}).size(), 40U) << "slots that are there do not go";
  EXPECT_EQ(show(next_gid_table({}, {})), "");
}

TEST(GidTable, ListsIpv4AddressesInOrderThenIpv6WithoutTheOwn) {
  const GidTable table =
      next_gid_table({}, {.mac = kMac, .ipv4 = {address(10), address(11)}, .ipv6 = {kOwn, global(1)}});
  EXPECT_EQ(show(table), "own/1 own/2 .10/1 .10/2 .11/1 .11/2 g1/1 g1/2");
}

TEST(GidTable, AnAddressThatStaysKeepsItsIndexAndANewOneTakesTheFirstFreeSlots) {
  GidTable table = next_gid_table({}, {.mac = kMac, .ipv4 = {address(10), address(11)}});
  table = next_gid_table(table, {.mac = kMac, .ipv4 = {address(11)}});
  EXPECT_EQ(show(table), "own/1 own/2 - - .11/1 .11/2");
  table = next_gid_table(table, {.mac = kMac, .ipv4 = {address(11), address(12), address(13)}});
  EXPECT_EQ(show(table), "own/1 own/2 .12/1 .12/2 .11/1 .11/2 .13/1 .13/2");
  table = next_gid_table(table, {.mac = kMac});
  EXPECT_EQ(show(table), "own/1 own/2");
}

TEST(GidTable, AnotherMacAddressChangesTheOwnEntriesOnly) {
  GidTable table = next_gid_table({}, {.mac = kMac, .ipv4 = {address(10)}});
  const Mac other = {0x4c, 0xbb, 0x47, 0x0a, 0x20, 0x00};
  table = next_gid_table(table, {.mac = other, .ipv4 = {address(10)}});
  EXPECT_EQ(show(table),
            "fe80:0000:0000:0000:4ebb:47ff:fe0a:2000/1 fe80:0000:0000:0000:4ebb:47ff:fe0a:2000/2 .10/1 .10/2");
}

TEST(GidTable, DriftMovesTheV2EntryBehindAnEmptySlotAndItsEndBringsItBack) {
  GidTable table = next_gid_table({}, {.mac = kMac, .ipv4 = {address(10)}});
  const GidTable healthy = table;
  table = next_gid_table(table, {.mac = kMac, .ipv4 = {address(10)}, .drift = true});
  EXPECT_EQ(show(table), "own/1 own/2 .10/1 - .10/2");
  EXPECT_EQ(next_gid_table(table, {.mac = kMac, .ipv4 = {address(10)}, .drift = true}), table);
  const GidTable more = next_gid_table(table, {.mac = kMac, .ipv4 = {address(10), address(11)}, .drift = true});
  EXPECT_EQ(show(more), "own/1 own/2 .10/1 - .10/2 - .11/1 .11/2") << "the drifted entry keeps its index";
  EXPECT_EQ(next_gid_table(table, {.mac = kMac, .ipv4 = {address(10)}}), healthy);
  EXPECT_EQ(show(next_gid_table({}, {.mac = kMac, .drift = true})), "own/1 own/2") << "nothing to drift";
  EXPECT_EQ(show(next_gid_table({}, {.mac = kMac, .ipv4 = {address(10)}, .ipv6 = {global(1)}, .drift = true})),
            "own/1 own/2 .10/1 - g1/1 g1/2 .10/2");
}

TEST(GidTable, TakesNoMoreThanTheAdapterHasSlots) {
  GidSources sources{.mac = kMac};
  for (std::uint32_t i = 0; i < 200; ++i) sources.ipv4.push_back(address(i));
  for (const bool drift : {false, true}) {
    sources.drift = drift;
    const GidTable table = next_gid_table({}, sources);
    EXPECT_LE(table.size(), kMaxGidSlots);
    EXPECT_EQ(next_gid_table(table, sources), table);
  }
}

// Over any history of addresses: each one has exactly its two entries, and keeps their index while it stays.
RC_GTEST_PROP(GidTable, HoldsEachAddressOnceInEachVersionAndMovesNone,
              (const std::vector<std::set<std::uint8_t>>& history, bool drift)) {
  GidTable table;
  for (const std::set<std::uint8_t>& step : history) {
    GidSources sources{.mac = kMac, .drift = drift};
    for (const std::uint8_t last : step)
      (last % 2 == 0 ? sources.ipv4.push_back(address(last)) : sources.ipv6.push_back(global(last)));
    if (step.size() > 100) continue;
    const GidTable next = next_gid_table(table, sources);
    RC_ASSERT(next_gid_table(next, sources) == next);
    std::vector<Gid> wanted = sources.ipv6;
    for (const Ipv4 each : sources.ipv4) wanted.push_back(mapped_gid(each));
    wanted.push_back(kOwn);
    std::size_t used = 0;
    for (const GidSlot& slot : next) used += slot.gid.empty() ? 0 : 1;
    RC_ASSERT(used == 2 * wanted.size());
    for (const Gid& gid : wanted) {
      for (const RoceVersion version : {RoceVersion::kV1, RoceVersion::kV2}) {
        const GidSlot slot{gid, version};
        RC_ASSERT(std::count(next.begin(), next.end(), slot) == 1);
        const auto before = std::find(table.begin(), table.end(), slot);
        if (before != table.end() && !drift) RC_ASSERT(next[static_cast<std::size_t>(before - table.begin())] == slot);
      }
    }
    table = next;
  }
}

}  // namespace
}  // namespace yoke::lab
