#include "yoke/spec/hostlist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/spec/cluster.h"

namespace yoke::spec {
namespace {

std::string expanded(const char* list) { return fmt::format("{}", fmt::join(expand_hostlist(list), " ")); }

// What `scontrol show hostnames` of Slurm 22.05 prints for the same list.
TEST(Hostlist, IsExpandedAsSlurmDoes) {
  EXPECT_EQ(expanded("b300-1"), "b300-1");
  EXPECT_EQ(expanded("b300-[1-4,7],login"), "b300-1 b300-2 b300-3 b300-4 b300-7 login");
  EXPECT_EQ(expanded("n[08-11]"), "n08 n09 n10 n11");
  EXPECT_EQ(expanded("r[1-2]n[01-02]"), "r1n01 r1n02 r2n01 r2n02");
  EXPECT_EQ(expanded("a[1-2]-ib,b"), "a1-ib a2-ib b");
  EXPECT_EQ(expand_hostlist("b300-[1-64]").size(), 64U);
}

TEST(Hostlist, WhatIsNoneIsRefused) {
  for (const char* wrong : {"", "a,,b", "a[1-", "a1]", "a[3-1]", "a[x]", "a[]", "[[1]]", "a[0-999999999]", "a[1-5000]",
                            "a[1-2000][1-2000]", "a[99999999999]"}) {
    EXPECT_ERROR(expand_hostlist(wrong), ErrorCode::kInvalid, "is no list of hosts") << wrong;
  }
}

// Each took gigabytes, or the stack.
TEST(Hostlist, CannotStandForMoreThanAClusterHolds) {
  std::string ranges = "0-4000", brackets = "n", entries = "[{name: 'n[1-4000]'}";
  for (int i = 0; i < 5000; ++i) {
    ranges += ",0-4000";
    brackets += "[1]";
    entries += ", {name: 'n[1-4000]'}";
  }
  EXPECT_ERROR(expand_hostlist("n[" + ranges + "]"), ErrorCode::kInvalid, "more than 4096 hosts");
  EXPECT_ERROR(expand_hostlist(brackets), ErrorCode::kInvalid, "more than 8 brackets in one name");
  EXPECT_ERROR(expand_hostlist("[1-4000]" + std::string(60'000, 'n')), ErrorCode::kInvalid, "a name of 60001 bytes");
  EXPECT_ERROR(expand_hostlist(std::string(100'000, 'n')), ErrorCode::kInvalid, "more than 65536 bytes");
  EXPECT_ERROR(parse_cluster("name: r\nnodes: " + entries + "]\n", "c"), ErrorCode::kInvalid, "too many nodes");
  std::string unused = "{interface: a, reason: b}";
  for (int i = 0; i < 1000; ++i) unused += ", {interface: a, reason: b}";
  EXPECT_ERROR(parse_cluster("name: r\nnodes: [{name: 'n[1-1000]', unused: [" + unused + "]}]\n", "c"),
               ErrorCode::kInvalid, "too many nodes");
}

TEST(Hostlist, StandsForManyNodesInAClusterFile) {
  const Cluster cluster = parse_cluster(
      "name: rack\nnodes:\n  - { name: 'b300-[1-3]', user: root }\n"
      "  - { name: 'h[1-2]', address: '10.0.1.[11-12]' }\n",
      "cluster.yaml");
  ASSERT_EQ(cluster.nodes.size(), 5U);
  EXPECT_EQ(cluster.nodes[2].name, "b300-3");
  EXPECT_EQ(cluster.nodes[2].address, "b300-3");
  EXPECT_EQ(cluster.nodes[2].user, "root");
  EXPECT_EQ(cluster.nodes[4].name, "h2");
  EXPECT_EQ(cluster.nodes[4].address, "10.0.1.12");
  EXPECT_EQ(parse_cluster(print_cluster(cluster), "printed"), cluster);
  EXPECT_EQ(parse_cluster("name: r\nnodes: 'b300-[1-8]'\n", "c").nodes.size(), 8U);
  EXPECT_EQ(parse_cluster("name: r\nnodes: ['b300-[1-2]', login]\n", "c").nodes[2].address, "login");
}

TEST(Hostlist, ThatDoesNotFitItsAddressesIsRefused) {
  EXPECT_ERROR(parse_cluster("name: r\nnodes:\n  - { name: 'b[1-3]', address: '10.0.0.[1-2]' }\n", "c"),
               ErrorCode::kInvalid, "3 names and 2 addresses");
  EXPECT_ERROR(parse_cluster("name: r\nnodes:\n  - { name: 'b[1-3]', address: 10.0.0.1 }\n", "c"), ErrorCode::kInvalid,
               "3 names and 1 addresses");
}

}  // namespace
}  // namespace yoke::spec
