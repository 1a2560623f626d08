#include "yoke/lab/layout.h"

#include <gtest/gtest.h>

#include <set>

#include "yoke/base/error_testing.h"
#include "yoke/spec/cluster.h"

namespace yoke::lab {
namespace {

LabLayout mesh_layout(LabOptions options = {}) {
  options.nodes = 4;
  options.topology = spec::Topology::kMesh;
  return lay_out_lab(options);
}

TEST(LabLayout, AMeshHasOneLinkForEachPairAndUsesNoHalfTwice) {
  const LabLayout layout = mesh_layout();
  std::set<std::pair<int, int>> pairs;
  std::set<std::pair<int, std::string>> ends;
  for (const LabCable& cable : layout.cables) {
    pairs.insert({cable.node_a, cable.node_b});
    ends.insert({cable.node_a, cable.interface_a});
    ends.insert({cable.node_b, cable.interface_b});
    EXPECT_EQ(cable.interface_a, cable.interface_b) << "the same half at both ends";
  }
  EXPECT_EQ(pairs, (std::set<std::pair<int, int>>{{1, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4}}));
  EXPECT_EQ(ends.size(), 12U);
}

TEST(LabLayout, AMeshIsAClusterThatYokeAccepts) {
  const spec::Cluster cluster = lab_cluster(mesh_layout());
  EXPECT_EQ(spec::parse_cluster(spec::print_cluster(cluster), "x"), cluster);
  EXPECT_EQ(cluster.fabric->subnets.size(), 6U);
  for (const spec::ClusterNode& node : cluster.nodes) EXPECT_EQ(node.rails.size(), 3U);
}

TEST(LabLayout, OfAMeshReachesEveryAddressOfAPeerOverTheLinkToIt) {
  const LabLayout layout = mesh_layout();
  for (const LabNode& node : layout.nodes) {
    EXPECT_EQ(node.routes.size(), 6U);
    for (const LabRoute& route : node.routes) {
      EXPECT_EQ(route.to.address.value & 0xFFU, route.via.value & 0xFFU) << "the peer itself, no node between";
    }
    const auto shared = shared_nic_links(layout, node);
    ASSERT_EQ(shared.size(), 1U) << "three rails on the NIC's two links";
    EXPECT_EQ(shared[0].interfaces.size(), 2U);
  }
}

TEST(LabLayout, RefusesAMeshThatCannotBe) {
  EXPECT_ERROR(lay_out_lab({.nodes = 3, .topology = spec::Topology::kMesh}), ErrorCode::kUsage,
               "a mesh has four nodes, not 3", "--nodes 4");
  EXPECT_ERROR(mesh_layout({.hardware = "b300"}), ErrorCode::kUsage, "not cabled as a mesh", "--topology switch");
  EXPECT_ERROR(mesh_layout({.cables = 2}), ErrorCode::kUsage, "cannot have 2 cables", "--cables 1");
}

}  // namespace
}  // namespace yoke::lab
