#include "yoke/check/node_baseline.h"

#include <gtest/gtest.h>

#include "yoke/check/server_cases_testing.h"

namespace yoke::check {
namespace {

TEST(NodeBaseline, CountsWhatWorks) {
  spec::Machine machine = made_b300(1);
  EXPECT_EQ(baseline_of(machine), (NodeBaseline{8, 144, 8, machine.memory.total}));
  machine.gpus[3].index.reset();
  machine.rdma_devices[0].state = "DOWN";
  EXPECT_EQ(baseline_of(machine), (NodeBaseline{7, 126, 7, machine.memory.total}));
  EXPECT_EQ(from_json<NodeBaseline>(to_json(baseline_of(machine))), baseline_of(machine));
}

TEST(NodeBaseline, WhatIsLessIsAFindingAndWhatIsMoreIsNone) {
  const NodeBaseline before{8, 144, 8, Bytes{2000LL << 30}};
  const auto subjects = [&](const NodeBaseline& now) {
    std::string names;
    for (const spec::Finding& finding : find_below_baseline("b300-1", now, before)) names += *finding.subject + " ";
    return names;
  };
  EXPECT_EQ(subjects(before), "");
  EXPECT_EQ(subjects({9, 160, 10, Bytes{3000LL << 30}}), "");
  EXPECT_EQ(subjects({7, 126, 8, before.memory}), "GPUs ") << "its NVLinks went with it";
  EXPECT_EQ(subjects({8, 142, 7, before.memory}), "NVLinks rails ");
  EXPECT_EQ(subjects({8, 144, 8, Bytes{1936LL << 30}}), "memory ") << "a module of 64 GiB";
  EXPECT_EQ(subjects({8, 144, 8, Bytes{1999LL << 30}}), "");
}

}  // namespace
}  // namespace yoke::check
