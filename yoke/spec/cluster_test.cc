#include "yoke/spec/cluster.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/spec/hardware.h"

namespace yoke::spec {
namespace {

constexpr std::string_view kDesk = R"(name: desk
nodes:
  - { name: spark-1, address: 192.168.1.21, user: nvidia }   # where ssh reaches it
  - { name: spark-2, address: 192.168.1.22, user: nvidia }
hardware: spark
fabric:
  topology: direct
  mtu: 9000
  subnets: [192.168.100.0/24, 192.168.101.0/24]
)";

TEST(ClusterFile, OfTheDesignIsRead) {
  const Cluster cluster = parse_cluster(kDesk, "cluster.yaml");
  EXPECT_EQ(cluster.name, "desk");
  ASSERT_EQ(cluster.nodes.size(), 2U);
  EXPECT_EQ(cluster.nodes[1].address, "192.168.1.22");
  EXPECT_EQ(cluster.nodes[1].user, "nvidia");
  EXPECT_EQ(cluster.nodes[1].port, 22);
  EXPECT_EQ(cluster.fabric->topology, Topology::kDirect);
  EXPECT_EQ(yoke::to_string(cluster.fabric->subnets[1]), "192.168.101.0/24");
  EXPECT_EQ(cluster.lab, std::nullopt);
}

TEST(ClusterFile, IsPrintedCanonically) {
  const Cluster cluster = parse_cluster(
      "fabric: {rail_rate: 2 Gbit/s, subnets: [10.0.0.0/24, 10.0.1.0/24]}\nlab: mini\n"
      "nodes: [{address: h1, name: a, rails: [{address: 10.0.0.1/24, interface: eth1}]}, {name: b, address: h2, port: "
      "2222}]\n"
      "name: x\n",
      "c.yaml");
  EXPECT_EQ(print_cluster(cluster),
            "name: x\n"
            "lab: mini\n"
            "nodes:\n"
            "  - name: a\n"
            "    address: h1\n"
            "    port: 22\n"
            "    rails:\n"
            "      - { interface: eth1, address: 10.0.0.1/24 }\n"
            "  - { name: b, address: h2, port: 2222 }\n"
            "fabric:\n"
            "  topology: direct\n"
            "  mtu: 9000\n"
            "  subnets: [10.0.0.0/24, 10.0.1.0/24]\n"
            "  rail_rate: 2Gb/s\n");
}

// Four nodes as the lab cables them by breakout optics: link 10.0.LINK.NODE, and one rail for each peer.
std::string mesh_file(std::string_view last_rails =
                          "{ interface: e0, address: 10.0.4.4/24 }, "
                          "{ interface: e1, address: 10.0.3.4/24 }, "
                          "{ interface: e2, address: 10.0.2.4/24 }") {
  return "name: desk\nnodes:\n"
         "  - { name: a, address: h1, rails: [{ interface: e0, address: 10.0.0.1/24 }, "
         "{ interface: e1, address: 10.0.1.1/24 }, { interface: e2, address: 10.0.2.1/24 }] }\n"
         "  - { name: b, address: h2, rails: [{ interface: e0, address: 10.0.0.2/24 }, "
         "{ interface: e1, address: 10.0.3.2/24 }, { interface: e2, address: 10.0.5.2/24 }] }\n"
         "  - { name: c, address: h3, rails: [{ interface: e0, address: 10.0.4.3/24 }, "
         "{ interface: e1, address: 10.0.1.3/24 }, { interface: e2, address: 10.0.5.3/24 }] }\n"
         "  - { name: d, address: h4, rails: [" +
         std::string(last_rails) +
         "] }\n"
         "hardware: spark\nfabric:\n  topology: mesh\n"
         "  subnets: [10.0.0.0/24, 10.0.1.0/24, 10.0.2.0/24, 10.0.3.0/24, 10.0.4.0/24, 10.0.5.0/24]\n";
}

TEST(ClusterFile, AMeshHasASubnetForEachPairOfItsFourNodes) {
  const Cluster mesh = parse_cluster(mesh_file(), "c.yaml");
  EXPECT_EQ(mesh.fabric->topology, Topology::kMesh);
  EXPECT_EQ(parse_cluster(print_cluster(mesh), "c.yaml"), mesh);
  EXPECT_NO_THROW(parse_cluster(mesh_file("{ interface: e0, address: 10.0.4.4/24 }"), "c.yaml"))
      << "rails that are not known yet";
  EXPECT_ERROR(parse_cluster(mesh_file("{ interface: e0, address: 10.0.0.4/24 }"), "c.yaml"), ErrorCode::kInvalid,
               "c.yaml:6: 10.0.0.0/24 has 3 rails in a mesh", "a subnet of its own");
  EXPECT_ERROR(parse_cluster(mesh_file("{ interface: e0, address: 10.0.9.4/24 }, "
                                       "{ interface: e1, address: 10.0.9.5/24 }"),
                             "c.yaml"),
               ErrorCode::kInvalid, "10.0.9.0/24 has 2 rails in a mesh", "one rail of each");
  std::string few = mesh_file();
  few.erase(few.find(", 10.0.5.0/24]"), 13);
  EXPECT_ERROR(parse_cluster(few, "c.yaml"), ErrorCode::kInvalid, "5 subnets for a mesh of 4 nodes",
               "give 6: one for each pair of nodes");
}

TEST(ClusterFile, TheFirstNodesOfAMeshAreARingOrAPair) {
  const Cluster mesh = parse_cluster(mesh_file(), "c.yaml");
  EXPECT_EQ(first_nodes(mesh, 4), mesh);
  for (const std::size_t count : {1U, 2U, 3U}) {
    const Cluster part = first_nodes(mesh, count);
    EXPECT_EQ(part.nodes.size(), count);
    EXPECT_EQ(part.fabric->topology, count == 3 ? Topology::kRing : Topology::kDirect);
    EXPECT_EQ(parse_cluster(print_cluster(part), "c.yaml"), part) << "it is a cluster that yoke accepts";
  }
  const Cluster pair = parse_cluster(kDesk, "c.yaml");
  EXPECT_EQ(first_nodes(pair, 1).fabric, pair.fabric) << "rails of a pair or of a switch stay what they are";
}

struct Wrong {
  const char* name;
  std::string text;
  const char* message;
  const char* hint;  // "": it has none
};

std::string with(std::string_view line, std::string_view instead) {
  std::string text(kDesk);
  const std::size_t at = text.find(line);
  return text.replace(at, line.size(), instead);
}

class ClusterFileRefuses : public testing::TestWithParam<Wrong> {};
TEST_P(ClusterFileRefuses, WithPlaceAndHint) {
  const Error error = error_of([] { parse_cluster(GetParam().text, "cluster.yaml"); });
  EXPECT_TRUE(is_error(error, ErrorCode::kInvalid, GetParam().message, GetParam().hint));
  EXPECT_EQ(error.message(), GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    Files, ClusterFileRefuses,
    testing::Values(
        Wrong{"Empty", "", "cluster.yaml is empty", "docs/cluster-file.md"},
        Wrong{"List", "- a\n", "cluster.yaml:1: this must be a map of keys, not a list", ""},
        Wrong{"UnknownKey", with("hardware:", "hardwear:"), "cluster.yaml:5: unknown key 'hardwear'",
              "did you mean 'hardware'?"},
        Wrong{"OldNameOfRails", with("user: nvidia }   #", "halves: [] }   #"), "cluster.yaml:3: unknown key 'halves'",
              "this key is called 'rails' now"},
        Wrong{"OldNameOfTheRailRate", with("mtu: 9000", "half_rate: 2Gb/s"), "cluster.yaml:8: unknown key 'half_rate'",
              "this key is called 'rail_rate' now"},
        Wrong{"NoValue", with("hardware: spark", "hardware:"), "cluster.yaml:5: 'hardware' has no value", "remove"},
        Wrong{"UnknownKeyWithoutValue", with("hardware: spark", "hardwear:"), "cluster.yaml:5: unknown key 'hardwear'",
              "did you mean 'hardware'?"},
        Wrong{"RailTwice",
              "name: x\nnodes:\n  - name: a\n    address: h\n    rails:\n      - { interface: e0, address: "
              "192.168.1.1/24 }"
              "\n      - { interface: e0, address: 192.168.2.1/24 }\n",
              "cluster.yaml:6: 'a' has two rails on e0", "an interface of its own"},
        Wrong{"RailThatAShellWouldRead",
              "name: x\nnodes:\n  - name: a\n    address: h\n    rails:\n      - { interface: $(id), address: "
              "192.168.1.1/24 }\n",
              "cluster.yaml:6: '$(id)' is no interface's name", "see 'ip link'"},
        Wrong{"RailOfNobody",
              "name: x\nnodes:\n  - name: a\n    address: h\n    rails:\n      - { interface: e0, address: "
              "192.168.1.255/24 }\n",
              "cluster.yaml:6: 192.168.1.255/24 is no address for a rail", "the network's own"},
        Wrong{"NoQuad", "name: x\nnodes: [{ name: a, address: 10.0.0.999 }]\n",
              "cluster.yaml:2: '10.0.0.999' is no address", "that ssh reaches"},
        Wrong{"HostTwice", "name: x\nnodes: [{ name: a, address: h.lan }, { name: b, address: H.lan. }]\n",
              "cluster.yaml:2: nodes 'a' and 'b' have the same address h.lan", "correct one"},
        Wrong{"UnknownNodeKey", with("user: nvidia }   #", "usr: nvidia }   #"), "cluster.yaml:3: unknown key 'usr'",
              "'user'"},
        Wrong{"UnknownFabricKey", with("mtu:", "mtuu:"), "cluster.yaml:8: unknown key 'mtuu'", "'mtu'"},
        Wrong{"MissingName", with("name: desk\n", ""), "cluster.yaml:1: the key 'name' is missing", ""},
        Wrong{"MissingNodes", "name: desk\n", "cluster.yaml:1: the key 'nodes' is missing", ""},
        Wrong{"NoNodes", "name: desk\nnodes: []\n", "cluster.yaml:2: there are no nodes", "list at least one"},
        Wrong{"NodesOfWrongType", "name: desk\nnodes: spark-1\n", "cluster.yaml:2: this must be a list, not 'spark-1'",
              ""},
        Wrong{"PortOfWrongType", with("user: nvidia }   #", "port: ssh }   #"),
              "cluster.yaml:3: this must be a whole number, not 'ssh'", ""},
        Wrong{"PortTooLarge", with("user: nvidia }   #", "port: 70000 }   #"), "cluster.yaml:3: 70000 is no port",
              "65535"},
        Wrong{"DuplicateName", with("spark-2", "spark-1"), "cluster.yaml:4: there are two nodes named 'spark-1'",
              "rename"},
        Wrong{"DuplicateAddress", with("1.22", "1.21"),
              "cluster.yaml:4: nodes 'spark-1' and 'spark-2' have the same address 192.168.1.21", "correct"},
        Wrong{"OptionAsAddress", with("192.168.1.21", "\"-oProxyCommand=x\""),
              "cluster.yaml:3: '-oProxyCommand=x' is no address", "ssh"},
        Wrong{"Ipv6Address", with("192.168.1.21", "\"fe80::1%eth0\""),
              "cluster.yaml:3: 'fe80::1%eth0' is no IPv4 address, and others are not supported", "host name"},
        Wrong{"PortInTheAddress", with("192.168.1.21", "\"192.168.1.21:2222\""),
              "cluster.yaml:3: '192.168.1.21:2222' is no IPv4 address, and others are not supported", "port"},
        Wrong{"SlashInName", with("name: spark-1", "name: a/b"), "cluster.yaml:3: 'a/b' cannot be a node's name",
              "letters"},
        Wrong{"UnknownHardware", with("hardware: spark", "hardware: sprak"),
              "cluster.yaml:5: the catalogue has no 'sprak'", "'spark'"},
        Wrong{"UnknownTopology", with("topology: direct", "topology: star"),
              "cluster.yaml:7: this must be one of direct, ring, mesh, switch, not 'star'", ""},
        Wrong{"AbsurdMtu", with("9000", "99999999"), "cluster.yaml:8: an MTU of 99999999 makes no sense", "9000"},
        Wrong{"BadSubnet", with("192.168.101.0/24", "192.168.101.0"),
              "cluster.yaml:9: this must be an IPv4 address with its prefix length, not '192.168.101.0'", "/24"},
        Wrong{"HostBits", with("192.168.101.0/24", "192.168.101.5/24"),
              "cluster.yaml:9: 192.168.101.5/24 is an address, not a network", "192.168.101.0/24"},
        Wrong{"Overlap", with("192.168.101.0/24", "192.168.100.128/25"),
              "cluster.yaml:9: 192.168.100.0/24 and 192.168.100.128/25 overlap", "subnet of its own"},
        Wrong{"TinySubnet", with("192.168.101.0/24", "192.168.101.0/31"),
              "cluster.yaml:9: 192.168.101.0/31 does not suit 2 nodes", "/24"},
        Wrong{"ManagementInFabric", with("192.168.101.0/24", "192.168.1.0/24"),
              "cluster.yaml:9: 192.168.1.0/24 holds the management address 192.168.1.21 of 'spark-1'", "management"},
        Wrong{"OneSubnetForTwoRails", with(", 192.168.101.0/24", ""),
              "cluster.yaml:9: 1 subnets for a direct of 2 nodes with 2 rails a cable", "give 2"},
        Wrong{"RingOfTwo", with("topology: direct", "topology: ring"),
              "cluster.yaml:7: a ring has at least three nodes, not 2", "direct"},
        Wrong{"MeshOfTwo", with("topology: direct", "topology: mesh"), "cluster.yaml:7: a mesh has four nodes, not 2",
              "direct"},
        Wrong{"ByteRate", with("mtu: 9000", "rail_rate: 2GB/s"),
              "cluster.yaml:8: this must be a rate in bits per second, not '2GB/s'", "bytes per second"},
        Wrong{"ZeroRate", with("mtu: 9000", "rail_rate: 0Gb/s"), "cluster.yaml:8: a rate must be above zero", ""}),
    [](const auto& test) { return test.param.name; });

Cluster random_cluster() {
  Cluster cluster{.name = "c" + std::to_string(*rc::gen::inRange(0, 1000))};
  const int nodes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < nodes; ++i) {
    ClusterNode node{.name = "n" + std::to_string(i), .address = "10.9.0." + std::to_string(i + 1)};
    if (*rc::gen::arbitrary<bool>())
      node.user = *rc::gen::elementOf(std::vector<std::string>{"nvidia", "no", "null", "1e3", "true"});
    node.port = *rc::gen::inRange(1, 65536);
    for (int rail = 0; rail < *rc::gen::inRange(0, 3); ++rail) {
      node.rails.push_back(
          {"en" + std::to_string(rail), {{0xC0A86400U + static_cast<unsigned>(rail * 256 + i + 1)}, 24}});
    }
    cluster.nodes.push_back(node);
  }
  if (*rc::gen::arbitrary<bool>()) cluster.lab = "lab-1";
  if (*rc::gen::arbitrary<bool>()) {
    Fabric fabric{.topology = nodes == 2 ? Topology::kDirect : Topology::kSwitch, .mtu = *rc::gen::inRange(1280, 9979)};
    fabric.subnets = {{{0xC0A86400}, 24}, {{0xC0A86500}, 24}};
    if (*rc::gen::arbitrary<bool>()) fabric.rail_rate = BitsPerSecond{1e6 + std::abs(*rc::gen::arbitrary<double>())};
    cluster.fabric = fabric;
  }
  if (*rc::gen::arbitrary<bool>()) cluster.hardware = *rc::gen::elementOf(std::vector<std::string>{"spark", "b300"});
  if (*rc::gen::arbitrary<bool>()) cluster.compute = Compute{.memory_bandwidth = BytesPerSecond{273e9}};
  return cluster;
}

RC_GTEST_PROP(Cluster, PrintedAsYamlOrJsonIsReadBackTheSame, ()) {
  const Cluster cluster = random_cluster();
  RC_PRE(!cluster.fabric || !cluster.fabric->rail_rate || std::isfinite(cluster.fabric->rail_rate->value));
  RC_ASSERT(parse_cluster(print_cluster(cluster), "x") == cluster);
  RC_ASSERT(from_json<Cluster>(parse_json(print_json(to_json(cluster)), "x")) == cluster);
}

TEST(Hardware, UnifiedMemoryIsKnownByTheWholeNameOfTheGpu) {
  for (const char* name : {"NVIDIA GB10", "NVIDIA GB10 rev 2", "NVIDIA Thor"}) EXPECT_TRUE(has_unified_memory(name));
  for (const char* name : {"NVIDIA GB100", "NVIDIA B300 SXM6 AC", "NVIDIA GH200 480GB", "NVIDIA GPU", ""}) {
    EXPECT_FALSE(has_unified_memory(name)) << name;
  }
}

TEST(Hardware, CatalogueHasEachNameOnce) {
  const std::vector<std::string> names = hardware_names();
  for (const std::string& name : names) EXPECT_EQ(std::count(names.begin(), names.end(), name), 1);
  EXPECT_EQ(find_hardware("spark")->rails_per_cable, 2);
  EXPECT_EQ(find_hardware("toaster"), nullptr);
}

}  // namespace
}  // namespace yoke::spec
