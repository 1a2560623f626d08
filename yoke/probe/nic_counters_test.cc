#include "yoke/probe/nic_counters.h"

#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/rtnetlink.h>

#include <cstring>

#include "yoke/probe/flow_control.h"

namespace yoke::probe {
namespace {

std::string netlink_attribute(unsigned short type, const std::string& value) {
  const rtattr header{.rta_len = static_cast<unsigned short>(RTA_LENGTH(value.size())), .rta_type = type};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += value;
  bytes.resize(RTA_ALIGN(bytes.size()));
  return bytes;
}

template <class T>
std::string raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string counter_names(std::initializer_list<std::string> names) {
  std::string bytes;
  for (std::string name : names) {
    name.resize(ETH_GSTRING_LEN);
    bytes += name;
  }
  return bytes;
}

TEST(NicCounters, PauseFramesAreReadAsTheKernelReportsThem) {
  const std::string sent = netlink_attribute(ETHTOOL_A_PAUSE_STAT_TX_FRAMES, raw(std::uint64_t{7}));
  const std::string received = netlink_attribute(ETHTOOL_A_PAUSE_STAT_RX_FRAMES, raw(std::uint64_t{1} << 40));
  const auto of = [](const std::string& statistics) {
    return parse_pause_statistics(netlink_attribute(ETHTOOL_A_PAUSE_RX, std::string(1, '\1')) +
                                  netlink_attribute(ETHTOOL_A_PAUSE_STATS | NLA_F_NESTED, statistics));
  };
  EXPECT_EQ(of(sent + received), (NicCounters{.pause_received = std::int64_t{1} << 40, .pause_sent = 7}));
  EXPECT_EQ(of(received).pause_sent, std::nullopt) << "a driver that counts one direction";
  EXPECT_EQ(of(""), NicCounters{}) << "a driver that counts none";
  EXPECT_EQ(of(netlink_attribute(ETHTOOL_A_PAUSE_STAT_TX_FRAMES, "ab")), NicCounters{}) << "torn";
  EXPECT_EQ(parse_pause_statistics({}), NicCounters{});
}

TEST(NicCounters, PauseFramesOfPrioritiesAreAdded) {
  ieee_pfc pfc{.pfc_en = 1U << 3};
  const auto parsed = [&] {
    return parse_flow_control(netlink_attribute(DCB_ATTR_IEEE, netlink_attribute(DCB_ATTR_IEEE_PFC, raw(pfc))));
  };
  EXPECT_EQ(parsed().pause_sent, std::nullopt) << "zeros are also what a driver leaves that does not count";
  pfc.requests[3] = 40;
  pfc.requests[4] = 2;
  pfc.indications[3] = ~__u64{0};
  EXPECT_EQ(parsed().pause_sent, 42);
  EXPECT_GT(parsed().pause_received, 0);
}

TEST(NicCounters, DiscardsAreFoundByTheirName) {
  EXPECT_EQ(find_discards(counter_names({"rx_packets", "rx_discards_phy_x", "rx_discards_phy", "tx_discards_phy"})),
            2U);
  EXPECT_EQ(find_discards(counter_names({"rx_packets", "tx_discards_phy"})), std::nullopt);
  EXPECT_EQ(find_discards({}), std::nullopt);
  const std::string whole = counter_names({"rx_discards_phy"});
  EXPECT_EQ(find_discards(std::string_view(whole).substr(0, ETH_GSTRING_LEN - 1)), std::nullopt) << "cut off";
}

TEST(NicCounters, OfAnInterfaceThatCountsNoneAreAbsent) {
  NicCounterReader reader;
  EXPECT_EQ(reader.read("lo"), NicCounters{});
  EXPECT_EQ(reader.read("no-such-interface-anywhere"), NicCounters{});
  EXPECT_EQ(reader.read(""), NicCounters{});
}

}  // namespace
}  // namespace yoke::probe
