#include "yoke/spec/fabric_pins.h"

#include <gtest/gtest.h>

#include <map>

namespace yoke::spec {
namespace {

PinFacts spark_facts() {
  return {.topology = Topology::kDirect,
          .interfaces = {"enp1s0f0np0", "enP2p1s0f0np0"},
          .rdma_devices = {"rocep1s0f0", "roceP2p1s0f0"},
          .dark_rails = {},
          .management_interface = "enP7s7",
          .management_address = "10.77.0.1",
          .rail_address = "192.168.100.1",
          .subnets = {"192.168.100.0/24", "192.168.101.0/24"},
          .gpus = 1,
          .unified_memory = true,
          .gpu_nic_path = ""};
}

std::map<std::string, std::string> values_of(const std::vector<FabricPin>& pins) {
  std::map<std::string, std::string> values;
  for (const FabricPin& pin : pins) {
    EXPECT_FALSE(pin.reason.empty()) << pin.name;
    values[pin.name] = pin.value;
  }
  return values;
}

TEST(FabricPins, APairUsesBothRailsAndMeetsOnTheFirst) {
  const auto values = values_of(fabric_pins(spark_facts()).pins);
  EXPECT_EQ(values,
            (std::map<std::string, std::string>{{"NCCL_IB_HCA", "=rocep1s0f0:1,roceP2p1s0f0:1"},
                                                {"NCCL_NET", "IB"},
                                                {"NCCL_SOCKET_IFNAME", "=enp1s0f0np0"},
                                                {"GLOO_SOCKET_IFNAME", "enp1s0f0np0"},
                                                {"TP_SOCKET_IFNAME", "enp1s0f0np0"},
                                                {"UCX_NET_DEVICES", "rocep1s0f0:1,roceP2p1s0f0:1"},
                                                {"OMPI_MCA_btl_tcp_if_include", "192.168.100.0/24,192.168.101.0/24"}}));
  EXPECT_EQ(bootstrap_interface(spark_facts()).address, "192.168.100.1");
}

TEST(FabricPins, ARingMeetsOverManagementAndKeepsItsPortsApart) {
  PinFacts facts = spark_facts();
  facts.topology = Topology::kRing;
  const auto values = values_of(fabric_pins(facts).pins);
  EXPECT_EQ(values.at("NCCL_SOCKET_IFNAME"), "=enP7s7");
  EXPECT_EQ(values.at("NCCL_IB_MERGE_NICS"), "0");
  EXPECT_EQ(values.at("NCCL_IB_SUBNET_AWARE_ROUTING"), "1");
  EXPECT_EQ(values.at("NCCL_NET_PLUGIN"), "none");
  EXPECT_EQ(bootstrap_interface(facts).address, "10.77.0.1");
  facts.management_interface.clear();
  EXPECT_EQ(bootstrap_interface(facts).interface, "enp1s0f0np0") << "nothing better is known";
}

TEST(FabricPins, AMeshIsPinnedAsARingIs) {
  PinFacts facts = spark_facts();
  facts.topology = Topology::kRing;
  const auto ring = values_of(fabric_pins(facts).pins);
  facts.topology = Topology::kMesh;
  EXPECT_EQ(values_of(fabric_pins(facts).pins), ring);
  EXPECT_EQ(bootstrap_interface(facts).reason, "where all nodes of a mesh reach each other");
}

TEST(FabricPins, AServerListsEveryNicAndSetsTheGpuDirectLevel) {
  PinFacts facts = spark_facts();
  facts.topology = Topology::kSwitch;
  facts.interfaces.clear();
  facts.rdma_devices.clear();
  for (int i = 0; i < 8; ++i) {
    facts.interfaces.push_back("rail" + std::to_string(i));
    facts.rdma_devices.push_back("mlx5_" + std::to_string(i));
  }
  facts.gpus = 8;
  facts.unified_memory = false;
  facts.gpu_nic_path = "PIX";
  const auto values = values_of(fabric_pins(facts).pins);
  EXPECT_EQ(values.at("NCCL_IB_HCA"), "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1");
  EXPECT_EQ(values.at("NCCL_NET_GDR_LEVEL"), "PXB");
  EXPECT_EQ(values.at("NCCL_SOCKET_IFNAME"), "=enP7s7") << "the rails may be separate fabrics";
  facts.gpu_nic_path = "NODE";
  EXPECT_EQ(values_of(fabric_pins(facts).pins).at("NCCL_NET_GDR_LEVEL"), "NODE");
}

TEST(FabricPins, ARailWithoutRdmaPinsNoPartOfAList) {
  PinFacts facts = spark_facts();
  facts.rdma_devices[1].clear();
  const auto values = values_of(fabric_pins(facts).pins);
  EXPECT_FALSE(values.contains("NCCL_IB_HCA"));
  EXPECT_FALSE(values.contains("NCCL_NET"));
  EXPECT_EQ(values.at("UCX_NET_DEVICES"), "enp1s0f0np0,enP2p1s0f0np0");
  facts.interfaces.clear();
  facts.rdma_devices.clear();
  EXPECT_TRUE(fabric_pins(facts).pins.empty());
  EXPECT_FALSE(fabric_pins(facts).left_out.empty()) << "and the reason is given";
}

TEST(FabricPins, AUsersOwnSettingWinsAndIsReported) {
  const std::vector<NetworkSetting> settings = {{"NCCL_IB_HCA", "mlx5_9", "/etc/environment"},
                                                {"NCCL_NET", "IB", "environment"},
                                                {"GLOO_SOCKET_IFNAME", "eth7", "/etc/yoke/fabric.env"},
                                                {"UCX_NET_DEVICES", " ", "environment"}};
  const NodePins pins = choose_pins(spark_facts(), settings);
  const auto values = values_of(pins.set);
  EXPECT_EQ(values.at("NCCL_IB_HCA"), "mlx5_9");
  EXPECT_EQ(values.at("GLOO_SOCKET_IFNAME"), "enp1s0f0np0") << "yoke's own file is no setting of the user";
  EXPECT_EQ(values.at("UCX_NET_DEVICES"), "rocep1s0f0:1,roceP2p1s0f0:1") << "an empty value is no wish";
  ASSERT_EQ(pins.overridden.size(), 1U) << "the same value needs no report";
  EXPECT_EQ(describe_override("spark-2", pins.overridden[0]),
            "spark-2: NCCL_IB_HCA stays mlx5_9 (/etc/environment); yoke would set =rocep1s0f0:1,roceP2p1s0f0:1.");
}

TEST(FabricPins, FollowTheFactsOfTheMachineNotTheFile) {
  const Cluster cluster = parse_cluster(
      "name: desk\nfabric: { topology: direct }\nnodes:\n"
      "  - name: a\n    address: 10.0.0.1\n    rails:\n"
      "      - { interface: up0, address: 192.168.100.1/24 }\n"
      "      - { interface: dark0, address: 192.168.101.1/24 }\n"
      "  - { name: b, address: 10.0.0.2 }\n",
      "test");
  Machine machine;
  machine.interfaces = {{.name = "mgmt", .up = true, .carrier = true, .addresses = {*parse_ipv4_prefix("10.0.0.1/24")}},
                        {.name = "up0", .up = true, .carrier = true, .rdma_device = "mlx5_0"},
                        {.name = "dark0", .up = true, .carrier = false, .rdma_device = "mlx5_1"}};
  const PinFacts facts = pin_facts(cluster, 0, machine);
  EXPECT_EQ(facts.interfaces, std::vector<std::string>{"up0"});
  EXPECT_EQ(facts.dark_rails, std::vector<std::string>{"dark0"});
  EXPECT_EQ(facts.management_interface, "mgmt");
  EXPECT_EQ(values_of(fabric_pins(facts).pins).at("NCCL_IB_HCA"), "=mlx5_0:1");
}

}  // namespace
}  // namespace yoke::spec
