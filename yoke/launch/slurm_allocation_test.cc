#include "yoke/launch/slurm_allocation.h"

#include <gtest/gtest.h>

namespace yoke::launch {
namespace {

spec::Cluster file_of(const char* nodes) {
  return spec::parse_cluster(std::string("name: rack\nnodes: ") + nodes, "c");
}

TEST(Allocation, ItsNodesAreTheCluster) {
  const AllocatedCluster made = cluster_of({"42", {"b300-3", "b300-4"}}, std::nullopt);
  EXPECT_EQ(made.cluster.name, "slurm-42");
  ASSERT_EQ(made.cluster.nodes.size(), 2U);
  EXPECT_EQ(made.cluster.nodes[1].address, "b300-4");
  EXPECT_EQ(made.note, "");
}

TEST(Allocation, TheFilesEntriesAreUsedForItsNodes) {
  const AllocatedCluster made = cluster_of({"42", {"b300-4", "b300-2"}}, file_of("'b300-[1-8]'"));
  EXPECT_EQ(made.cluster.name, "rack");
  ASSERT_EQ(made.cluster.nodes.size(), 2U);
  EXPECT_EQ(made.cluster.nodes[0].name, "b300-4") << "in the allocation's order";
  EXPECT_EQ(made.note, "");
}

TEST(Allocation, AFileOfOtherNodesIsSaidAndNotUsed) {
  const AllocatedCluster made = cluster_of({"42", {"b300-7", "b300-9"}}, file_of("'b300-[1-8]'"));
  EXPECT_EQ(made.cluster.nodes[1].name, "b300-9");
  EXPECT_NE(made.note.find("other nodes (b300-1, "), std::string::npos) << made.note;
  EXPECT_NE(made.note.find("Slurm job 42 has (b300-7, b300-9)"), std::string::npos) << made.note;
}

}  // namespace
}  // namespace yoke::launch
