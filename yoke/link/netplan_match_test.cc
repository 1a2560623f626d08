#include "yoke/link/netplan_match.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "yoke/base/yaml.h"

namespace yoke::link {
namespace {

const std::vector<NetplanTarget> kRails = {{"enp1s0f0np0", "3c:6d:66:cc:b3:b7", "mlx5_core"},
                                           {"enP2p1s0f0np0", "3c:6d:66:cc:b3:b8", ""}};

// "file id interface" of the clash, or nothing.
std::string clash_in(const std::string& ethernets, const std::string& renderer = "networkd") {
  const std::string text = fmt::format("network: {{ renderer: {}, ethernets: {{ {} }} }}", renderer, ethernets);
  const auto clash = find_netplan_clash(
      {{"a.yaml", parse_yaml("network: { version: 2 }", "a.yaml")}, {"b.yaml", parse_yaml(text, "b.yaml")}}, kRails);
  return clash ? fmt::format("{} {} {}", clash->file, clash->id, clash->interface) : "";
}

TEST(NetplanMatch, ReachesARailByNameMacOrDriver) {
  EXPECT_EQ(clash_in("NM-aaaa: { match: { name: enp1s0f0np0 }, dhcp4: true, mtu: 1500 }"),
            "b.yaml NM-aaaa enp1s0f0np0");
  EXPECT_EQ(clash_in("all: { match: { name: 'enP*' } }"), "b.yaml all enP2p1s0f0np0") << "letters count";
  EXPECT_EQ(clash_in("x: { match: { macaddress: '3C:6D:66:CC:B3:B8' } }"), "b.yaml x enP2p1s0f0np0");
  EXPECT_EQ(clash_in("x: { match: { driver: [ixgbe, 'mlx*'] } }"), "b.yaml x enp1s0f0np0");
  EXPECT_EQ(clash_in("x: { match: {} }"), "b.yaml x enp1s0f0np0") << "networkd takes it for every interface";
}

TEST(NetplanMatch, LeavesAloneWhatMeansAnotherInterface) {
  for (const char* definition :
       {"enP7s7: { dhcp4: true }", "lan: { match: { name: 'enP7*' }, dhcp4: true }",
        "lan: { match: { name: 'en*', macaddress: '00:11:22:33:44:55' } }", "lan: { match: { driver: r8127 } }",
        "enp1s0f0np0: { match: { macaddress: '3c:6d:66:cc:b3:b7' } }"}) {
    EXPECT_EQ(clash_in(definition), "") << definition;
  }
  EXPECT_EQ(clash_in("NM-bbbb: { match: {} }", "NetworkManager"), "") << "one interface at a time takes it";
  EXPECT_EQ(clash_in("NM-bbbb: { renderer: NetworkManager, match: {} }"), "");
}

TEST(NetplanMatch, ARailsNameThatMeansAnotherInterfaceIsNoRail) {
  EXPECT_EQ(clash_in("enp1s0f0np0: { match: { macaddress: '00:11:22:33:44:55' } }"), "b.yaml enp1s0f0np0 enp1s0f0np0");
  EXPECT_EQ(clash_in("enp1s0f0np0: { match: { name: enP2p1s0f0np0 } }"), "b.yaml enp1s0f0np0 enp1s0f0np0");
}

TEST(NetplanMatch, ThisMachinesLoopbackHasANameAndNoDriver) {
  const NetplanTarget loopback = read_netplan_target("lo");
  EXPECT_EQ(loopback.name, "lo");
  EXPECT_EQ(loopback.mac, "00:00:00:00:00:00");
  EXPECT_EQ(loopback.driver, "");
}

}  // namespace
}  // namespace yoke::link
