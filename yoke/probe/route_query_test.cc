#include "yoke/probe/route_query.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <cstring>

namespace yoke::probe {
namespace {

using Names = std::vector<std::string>;

TEST(RouteQuery, FindsTheLoopbackAndNothingFromAnAddressOfOthers) {
  EXPECT_EQ(ask_route(*parse_ipv4("127.0.0.2"), std::nullopt), Names{"lo"});
  EXPECT_EQ(ask_route(*parse_ipv4("127.0.0.2"), *parse_ipv4("127.0.0.1")), Names{"lo"});
  EXPECT_EQ(ask_route(*parse_ipv4("127.0.0.2"), *parse_ipv4("198.51.100.77")), Names{}) << "not our address";
}

// As the kernel writes it: a route by two next hops.
TEST(RouteQuery, EveryNextHopOfARouteCounts) {
  struct Hop {
    rtnexthop head{.rtnh_len = sizeof(rtnexthop), .rtnh_flags = 0, .rtnh_hops = 0, .rtnh_ifindex = 0};
  };
  struct {
    rtmsg body{};
    rtattr attribute{};
    Hop hops[2];
  } message;
  message.attribute = {.rta_len = sizeof(rtattr) + sizeof message.hops, .rta_type = RTA_MULTIPATH};
  message.hops[0].head.rtnh_ifindex = 4;
  message.hops[1].head.rtnh_ifindex = 7;
  const auto* bytes = reinterpret_cast<const char*>(&message);
  EXPECT_EQ(route_devices({bytes, sizeof message}), (std::vector<unsigned>{4, 7}));
  EXPECT_EQ(route_devices({bytes, sizeof message - 1}), std::vector<unsigned>{}) << "cut short";
  message.hops[0].head.rtnh_len = 0;
  EXPECT_EQ(route_devices({bytes, sizeof message}), std::vector<unsigned>{}) << "would never end";
}

}  // namespace
}  // namespace yoke::probe
