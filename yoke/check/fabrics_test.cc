// Fabrics that are made otherwise than a Spark's: addresses by VLANs, InfiniBand, servers with NICs of several kinds.
#include <gtest/gtest.h>

#include "yoke/check/facts_testing.h"

namespace yoke::check {
namespace {

// Moves the address of a rail, and what follows from it, to a VLAN over it.
void put_into_vlan(spec::Survey& facts, std::size_t node, const char* rail) {
  spec::NetworkInterface& base = interface_of(facts, node, rail);
  spec::NetworkInterface vlan{
      .name = fmt::format("{}.100", rail), .kind = spec::InterfaceKind::kVirtual, .mac = "", .mtu = 9000};
  vlan.up = vlan.carrier = true;
  std::swap(vlan.addresses, base.addresses);
  spec::Machine& machine = *facts.nodes[node].machine;
  for (spec::GidEntry& gid : rdma_of(facts, node, *base.rdma_device).gids) {
    if (gid.ipv4) gid.interface = vlan.name;
  }
  for (spec::Route& route : machine.routes) {
    if (route.interface == rail) route.interface = vlan.name;
  }
  machine.interfaces.push_back(vlan);
}

TEST(Fabrics, RailsMayHaveTheirAddressesByVlans) {
  spec::Survey facts = made_pair();
  facts.cluster.reset();
  for (const std::size_t node : {0U, 1U}) {
    for (const char* rail : {kRailA, kRailB}) put_into_vlan(facts, node, rail);
  }
  EXPECT_EQ(rules_of(facts), "");
  interface_of(facts, 1, "enP2p1s0f0np0.100").addresses = {made_address(100, 7)};
  EXPECT_EQ(rules_of(facts).substr(0, 13), "subnet-shared") << "a VLAN's address counts as the rail's";
}

TEST(Fabrics, AVlanThatTheClusterFileDoesNotNameIsNotTheRails) {
  spec::Survey facts = made_pair();
  put_into_vlan(facts, 1, kRailB);
  EXPECT_EQ(rules_of(facts), "rail-unaddressed spark-2 enP2p1s0f0np0");
  EXPECT_NE(evaluate(facts)[0].evidence.find("enP2p1s0f0np0.100 has 192.168.101.2/24"), std::string::npos);
}

TEST(Fabrics, InfiniBandWorksWithoutIpAndWithItsOwnMtu) {
  spec::Survey facts = made_pair();
  facts.cluster.reset();
  for (const std::size_t node : {0U, 1U}) {
    for (const char* rail : {kRailA, kRailB}) {
      spec::NetworkInterface& interface = interface_of(facts, node, rail);
      interface.addresses.clear();
      interface.mtu = node == 0 ? 4092 : 2044;
      spec::RdmaDevice& device = rdma_of(facts, node, *interface.rdma_device);
      device.link_layer = "InfiniBand";
      device.gids.clear();
      device.gid_index.reset();
    }
  }
  EXPECT_EQ(rules_of(facts), "");
  for (const char* rail : {kRailA, kRailB}) interface_of(facts, 1, rail).addresses = {made_address(16, rail[2])};
  EXPECT_EQ(rules_of(facts), "") << "one network for all, as clouds give them";
  for (const char* rail : {kRailA, kRailB}) {
    interface_of(facts, 1, rail).addresses.clear();
    interface_of(facts, 1, rail).up = interface_of(facts, 1, rail).carrier = false;
  }
  EXPECT_EQ(rules_of(facts), "") << "without IP its interface need not be up";
  facts.cluster = made_pair().cluster;
  facts.nodes[0].machine = made_spark(1);
  EXPECT_EQ(rules_of(facts), "port-down spark-2 port 0") << "the cluster file gives it addresses";
}

// A server with a NIC of 800 Gb/s for each of eight GPUs, and one of another make for storage.
spec::Machine made_server() {
  spec::Machine machine{.hostname = "gpu-1", .architecture = "x86_64", .os = "Ubuntu 24.04"};
  machine.memlock_unlimited = true;
  for (int i = 0; i < 8; ++i) machine.gpus.push_back({.index = i, .name = "NVIDIA B300 SXM6 AC"});
  for (int i = 0; i <= 8; ++i) {
    spec::NetworkInterface nic = made_rail("nic", "A", 0, i, 1);
    nic.name = fmt::format("ens{}np0", i);
    nic.port = i;
    nic.rdma_device = fmt::format("mlx5_{}", i);
    nic.pci_address = fmt::format("0000:{:02x}:00.0", i + 16);
    machine.rdma_devices.push_back(made_rdma(nic));
    machine.rdma_devices.back().board = i < 8 ? "NVD0000000100" : "MT_0000000359";
    machine.rdma_devices.back().rate = BitsPerSecond{i < 8 ? 800e9 : 200e9};
    machine.interfaces.push_back(nic);
  }
  machine.interfaces.back().mtu = 1500;
  return machine;
}

spec::Survey alone(spec::Machine machine) {
  spec::Survey facts;
  facts.nodes = {{.name = machine.hostname, .machine = std::move(machine)}};
  return facts;
}

TEST(Fabrics, ANicForStorageIsNone) {
  spec::Survey facts = alone(made_server());
  EXPECT_EQ(rules_of(facts), "");
  interface_of(facts, 0, "ens7np0").mtu = 1500;
  rdma_of(facts, 0, "mlx5_2").rate = BitsPerSecond{400e9};
  EXPECT_EQ(rules_of(facts), "mtu-small gpu-1 ens7np0; port-slow gpu-1 ens2np0") << "the others are looked at";
}

TEST(Fabrics, ANicOfTheSameBoardThatIsBesideNoGpuIsNone) {
  spec::Survey facts = alone(made_server());
  rdma_of(facts, 0, "mlx5_8").board = "NVD0000000100";
  EXPECT_EQ(rules_of(facts), "mtu-small gpu-1 ens8np0; port-slow gpu-1 ens8np0");
  spec::DeviceTopology& topology = facts.nodes[0].machine->topology.emplace();
  for (int i = 0; i < 8; ++i) topology.devices.push_back(fmt::format("GPU{}", i));
  for (int i = 0; i <= 8; ++i) topology.devices.push_back(fmt::format("mlx5_{}", i));
  for (int i = 0; i < 8; ++i) {
    topology.paths.emplace_back(17, "NODE");
    topology.paths.back()[static_cast<std::size_t>(8 + i)] = "PXB";
  }
  EXPECT_EQ(rules_of(facts), "");
  interface_of(facts, 0, "ens7np0").mtu = 1500;
  EXPECT_EQ(rules_of(facts), "mtu-small gpu-1 ens7np0");
}

TEST(Fabrics, AServersNicsMayAllBeSlowerThanTheCataloguesButNotOneOfThem) {
  spec::Survey facts = alone(made_server());
  for (spec::RdmaDevice& device : facts.nodes[0].machine->rdma_devices) device.rate = BitsPerSecond{200e9};
  EXPECT_EQ(rules_of(facts), "");
  facts.nodes.push_back({.name = "gpu-2", .machine = made_server()});
  spec::Machine& second = *facts.nodes[1].machine;
  for (std::size_t i = 0; i < second.interfaces.size(); ++i) {
    second.interfaces[i].addresses[0].address.value += 1;
    second.rdma_devices[i].gids = made_rdma(second.interfaces[i]).gids;
    second.rdma_devices[i].rate = BitsPerSecond{i == 0 ? 400e9 : 200e9};
  }
  EXPECT_EQ(rules_of(facts).substr(0, 23), "port-slow gpu-1 ens0np0") << "another node shows what this board can";
}

}  // namespace
}  // namespace yoke::check
