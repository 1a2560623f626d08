#include "yoke/link/interfaces.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process.h"

namespace yoke::link {
namespace {

constexpr std::string_view kTwo = R"([
 {"ifindex":2,"ifname":"enp1s0f0np0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":9000,"operstate":"UP",
  "address":"3c:6d:66:cc:b3:b7",
  "addr_info":[{"family":"inet","local":"192.168.100.1","prefixlen":24,"scope":"global"},
               {"family":"inet6","local":"fe80::3e6d:66ff:fecc:b3b7","prefixlen":64,"scope":"link"}],
  "stats64":{"rx":{"bytes":10,"packets":1,"errors":2,"dropped":3},
             "tx":{"bytes":20,"packets":1,"errors":4,"dropped":5}}},
 {},
 {"ifindex":3,"ifname":"enP2p1s0f0np0","flags":["NO-CARRIER","BROADCAST","UP"],"mtu":1500,"addr_info":[]}])";

TEST(LinkInterfaces, AreReadAsIpPrintsThem) {
  const auto interfaces = parse_link_interfaces(kTwo);
  ASSERT_EQ(interfaces.size(), 2U) << "filtered interfaces leave empty objects";
  const LinkInterface& first = interfaces[0];
  EXPECT_EQ(first.name, "enp1s0f0np0");
  EXPECT_EQ(first.mtu, 9000);
  EXPECT_TRUE(first.up);
  EXPECT_TRUE(first.carrier);
  EXPECT_EQ(first.ipv4, (std::vector<std::string>{"192.168.100.1/24"}));
  EXPECT_EQ(first.ipv6, (std::vector<std::string>{"fe80::3e6d:66ff:fecc:b3b7/64"}));
  EXPECT_EQ(first.counters, (LinkCounters{10, 20, 2, 4, 3, 5}));
  EXPECT_TRUE(interfaces[1].up);
  EXPECT_FALSE(interfaces[1].carrier) << "a pulled cable: up, but nobody there";
  EXPECT_EQ(from_json<LinkInterface>(to_json(first)), first);
}

TEST(LinkInterfaces, FindsByNameAndNothingElse) {
  const auto interfaces = parse_link_interfaces(kTwo);
  EXPECT_EQ(find_link_interface(interfaces, "enP2p1s0f0np0"), &interfaces[1]);
  EXPECT_EQ(find_link_interface(interfaces, "enp1s0f0"), nullptr);
}

TEST(LinkInterfaces, OtherTextIsRefused) {
  for (const WrongInput& wrong : {WrongInput{"", "ip -json is not JSON"},
                                  {"{}", "this must be a list"},
                                  {"[1]x", "expected end of input"},
                                  {R"([{"ifname":5}])", "[0].ifname"},
                                  {R"([{"ifname":"a","mtu":"big"}])", "[0].mtu"},
                                  {R"([{"ifname":"a","flags":"UP"}])", "[0].flags"}}) {
    EXPECT_ERROR(parse_link_interfaces(wrong.text), ErrorCode::kInvalid, wrong.words) << wrong.text;
  }
}

TEST(LinkInterfaces, ARouteNamesItsInterface) {
  EXPECT_EQ(parse_route_interface(R"([{"dst":"192.168.100.2","from":"192.168.100.1","dev":"enP7s7","flags":[]}])"),
            "enP7s7");
  EXPECT_EQ(parse_route_interface("[]"), std::nullopt);
  EXPECT_EQ(parse_route_interface(R"([{"type":"unreachable"}])"), std::nullopt);
}

TEST(LinkInterfaces, ThisMachineHasItsLoopback) {
  if (!is_installed("ip")) GTEST_SKIP() << "iproute2 is not installed";
  const auto interfaces = read_link_interfaces();
  ASSERT_NE(find_link_interface(interfaces, "lo"), nullptr);
  EXPECT_TRUE(find_link_interface(interfaces, "lo")->up);
  EXPECT_EQ(read_route_interface("127.0.0.1", "127.0.0.1"), "lo");
}

}  // namespace
}  // namespace yoke::link
