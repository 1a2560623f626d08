// The pure parts of a discovery: names, ends and sightings from what nodes told.
#include "yoke/link/discover.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace yoke::link {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

spec::NetworkInterface fast(const std::string& name, int port, const std::string& rail, const std::string& mac,
                            const std::string& address = "") {
  spec::NetworkInterface interface {
    .name = name, .kind = spec::InterfaceKind::kEthernet, .mac = mac, .mtu = 9000, .up = true
  };
  interface.carrier = true;
  interface.port = port;
  interface.rail = rail;
  if (!address.empty()) interface.addresses = {parse_ipv4_prefix(address).value()};
  return interface;
}

// Two rails of one port, with addresses where `subnets` says so.
FoundNode spark(int number, const std::vector<std::string>& subnets = {"", ""}) {
  FoundNode node;
  node.access = {.name = "", .address = fmt::format("10.0.0.{}", number)};
  node.report.machine.hostname = fmt::format("spark-{}.local", number);
  const auto address = [&](std::size_t i, int host) {
    return subnets[i].empty() ? "" : fmt::format("{}.{}/24", subnets[i], host);
  };
  node.report.machine.interfaces = {
      fast("enp1s0f0np0", 0, "A", fmt::format("4c:bb:47:00:00:{:02x}", number), address(0, number)),
      fast("enP2p1s0f0np0", 0, "B", fmt::format("4c:bb:47:00:01:{:02x}", number), address(1, 100 + number))};
  node.report.identity = node_identity("same on clones", node.report.machine);
  return node;
}

Beacon beacon_of(const FoundNode& node, std::size_t interface) {
  return beacons_of(node.report.machine, node.report.identity, std::nullopt).at(interface);
}

std::vector<std::string> reported(const std::vector<spec::Adjacency>& adjacencies) {
  std::vector<std::string> texts;
  for (const spec::Adjacency& s : adjacencies) {
    texts.push_back(fmt::format("{}{}<{}{}", s.by.node, s.by.rail, s.from.node, s.from.rail));
  }
  return texts;
}

TEST(Discover, ClonesOfOneDiskAreToldApartByTheirMacAddresses) {
  EXPECT_NE(spark(1).report.identity, spark(2).report.identity);
  EXPECT_EQ(spark(1).report.identity, spark(1).report.identity);
  FoundNode renamed = spark(1);
  renamed.report.machine.hostname = "other";
  EXPECT_NE(node_identity("id", renamed.report.machine), node_identity("id", spark(1).report.machine));
}

TEST(Discover, NamesComeFromHostNamesAndAreUnique) {
  std::vector<FoundNode> nodes = {spark(1), spark(2), spark(3)};
  nodes[1].report.machine.hostname = "spark-1.example.org";
  nodes[2].access.name = "third";  // as a cluster file called it
  name_nodes(nodes);
  EXPECT_EQ(nodes[0].access.name, "spark-1");
  EXPECT_EQ(nodes[1].access.name, "spark-1-2");
  EXPECT_EQ(nodes[2].access.name, "third");
  EXPECT_EQ(node_name("böx"), "b--x");
  EXPECT_EQ(node_name("-x"), "node-x");
  EXPECT_EQ(node_name(""), "node");
  EXPECT_EQ(node_name(std::string(300, 'a')).size(), 63U);
}

TEST(Discover, ABeaconCountsOnlyForAnInterfaceThatItsNodeHas) {
  std::vector<FoundNode> nodes = {spark(1), spark(2)};
  Beacon forged = beacon_of(nodes[1], 1);
  forged.interface = "eth9";
  Beacon stolen = beacon_of(nodes[1], 1);
  stolen.mac = "4c:bb:47:ff:ff:ff";
  nodes[0].report.heard = {{"enp1s0f0np0", beacon_of(nodes[1], 0)},
                           {"enp1s0f0np0", beacon_of(nodes[1], 0)},
                           {"enP2p1s0f0np0", forged},
                           {"enP2p1s0f0np0", stolen},
                           {"wlan0", beacon_of(nodes[1], 1)}};
  EXPECT_THAT(reported(adjacencies_from_beacons(nodes)), ElementsAre("0A<1A"));
}

TEST(Discover, ItsOwnBeaconOnItsOtherRailIsASightingToo) {
  std::vector<FoundNode> nodes = {spark(1)};
  nodes[0].report.heard = {{"enp1s0f0np0", beacon_of(nodes[0], 1)}, {"enp1s0f0np0", beacon_of(nodes[0], 0)}};
  EXPECT_THAT(reported(adjacencies_from_beacons(nodes)), ElementsAre("0A<0B"));
}

TEST(Discover, EndsInOneSubnetAreTakenAsJoined) {
  const std::vector<FoundNode> nodes = {spark(1, {"192.168.100", "192.168.101"}),
                                        spark(2, {"192.168.100", "192.168.101"})};
  EXPECT_THAT(reported(adjacencies_from_addresses(nodes)), ElementsAre("0A<1A", "0B<1B", "1A<0A", "1B<0B"));
}

TEST(Discover, BothRailsInOneSubnetAreJoinedByTheirLetters) {
  const std::vector<FoundNode> nodes = {spark(1, {"192.168.0", "192.168.0"}), spark(2, {"192.168.0", "192.168.0"})};
  EXPECT_THAT(reported(adjacencies_from_addresses(nodes)), ElementsAre("0A<1A", "0B<1B", "1A<0A", "1B<0B"));
}

TEST(Discover, SelfGivenAddressesAndEndsWithoutCarrierJoinNobody) {
  std::vector<FoundNode> local = {spark(1, {"169.254.1", ""}), spark(2, {"169.254.1", ""})};
  EXPECT_THAT(adjacencies_from_addresses(local), IsEmpty());
  std::vector<FoundNode> down = {spark(1, {"192.168.0", ""}), spark(2, {"192.168.0", ""})};
  down[1].report.machine.interfaces[0].carrier = false;
  EXPECT_THAT(adjacencies_from_addresses(down), IsEmpty());
}

TEST(Discover, LldpJoinsByMacAddressAndNamesASwitch) {
  std::vector<FoundNode> nodes = {spark(1), spark(2)};
  nodes[0].report.lldp = {{.interface = "enP2p1s0f0np0", .system = "spark-2", .port_mac = "4c:bb:47:00:01:02"}};
  EXPECT_THAT(reported(adjacencies_from_addresses(nodes)), ElementsAre("0B<1B"));
  EXPECT_EQ(switch_name(nodes), std::nullopt);
  nodes[1].report.lldp = {{.interface = "wlan0", .system = "home", .bridge = true},
                          {.interface = "enp1s0f0np0", .system = "crs812", .bridge = true}};
  EXPECT_EQ(switch_name(nodes), "crs812");
}

TEST(Discover, StrangersAreFoundOnceWithTheirAddress) {
  std::vector<FoundNode> nodes = {spark(1)};
  name_nodes(nodes);
  const FoundNode unknown = spark(9);
  const auto beacons = beacons_of(unknown.report.machine, unknown.report.identity, parse_ipv4("10.0.0.9").value());
  nodes[0].report.heard = {{"enp1s0f0np0", beacons[0]}, {"enP2p1s0f0np0", beacons[1]}};
  const std::vector<spec::UnknownNode> unknown_nodes = find_unknown_nodes(nodes);
  ASSERT_EQ(unknown_nodes.size(), 1U);
  EXPECT_EQ(unknown_nodes[0].interface, "enp1s0f0np0");
  EXPECT_EQ(unknown_nodes[0].address, parse_ipv4("10.0.0.9").value());
}

TEST(Discover, WithoutRdmaTheInterfacesBesideTheManagementNetworkAreFast) {
  spec::Machine machine;
  machine.interfaces = {fast("eth0", 0, "A", "4c:bb:47:00:00:01", "10.0.0.1/24"),
                        fast("eth1", 0, "A", "4c:bb:47:00:00:02"), fast("eth2", 0, "A", "4c:bb:47:00:00:03"),
                        fast("docker0", 0, "A", "4c:bb:47:00:00:04", "172.17.0.1/16"),
                        fast("veth1", 0, "A", "4c:bb:47:00:00:05")};
  for (spec::NetworkInterface& interface : machine.interfaces) {
    interface.port.reset();
    interface.rail.reset();
  }
  machine.interfaces[3].kind = spec::InterfaceKind::kBridge;
  machine.interfaces[4].master = "docker0";
  EXPECT_EQ(management_address(machine), parse_ipv4("10.0.0.1").value());
  mark_fast_interfaces(machine, std::nullopt);
  std::vector<std::string> names;
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(machine)) names.push_back(interface->name);
  EXPECT_THAT(names, ElementsAre("eth1", "eth2"));
}

TEST(Discover, AReportReadsBack) {
  FoundNode node = spark(1);
  node.report.version = "0.1.0";
  node.report.heard = {{"enp1s0f0np0", beacon_of(spark(2), 0)}};
  node.report.lldp = {{.interface = "enp1s0f0np0", .system = "crs812", .bridge = true}};
  node.report.netplan = {"40-cx7.yaml"};
  node.report.beacon_problem = "no";
  const NodeReport again = from_json<NodeReport>(to_json(node.report));
  EXPECT_EQ(again.identity, node.report.identity);
  EXPECT_EQ(again.machine, node.report.machine);
  EXPECT_EQ(again.heard, node.report.heard);
  EXPECT_EQ(again.lldp, node.report.lldp);
  EXPECT_EQ(again.netplan, node.report.netplan);
  EXPECT_EQ(again.beacon_problem, node.report.beacon_problem);
}

}  // namespace
}  // namespace yoke::link
