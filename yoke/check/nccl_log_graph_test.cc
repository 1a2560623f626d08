// The rings and trees of an NCCL log: how they are read, and when their order is reported.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/check/nccl_log_testing.h"

namespace yoke::check {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two servers of two GPUs, as NCCL 2.28 prints its rings and trees.
std::string graph_of(const std::vector<std::string>& rings) {
  std::string text;
  const auto say = [&](int rank, const std::string& line) {
    text += fmt::format("b300-{}:10:10 [{}] NCCL INFO {}\n", rank / 2 + 1, rank % 2, line);
  };
  for (int rank = 0; rank < 4; ++rank) say(rank, fmt::format("comm 0x1 rank {} nranks 4 - Init COMPLETE", rank));
  for (std::size_t i = 0; i < rings.size(); ++i)
    say(0, fmt::format("Channel 0{}/0{} :    {}", i, rings.size(), rings[i]));
  say(0, "Trees [0] 1/2/-1->0->-1 [1] 1/-1/-1->0->2");
  say(1, "Trees [0] -1/-1/-1->1->0 [1] -1/-1/-1->1->0");
  say(2, "Trees [0] 3/-1/-1->2->0 [1] 3/0/-1->2->-1");
  say(3, "Trees [0] -1/-1/-1->3->2 [1] -1/-1/-1->3->2");
  return text;
}

TEST(NcclGraph, RingsAndTreesAreReadAndAnOrderThatEntersEachMachineOnceIsRight) {
  const spec::NcclLog log = parse_nccl_log(graph_of({"0   1   2   3", "1 0 3 2"}));
  ASSERT_EQ(log.rings.size(), 2U);
  EXPECT_THAT(log.rings.at(1).ranks, ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(log.tree_parents.at({1, 0}), ElementsAre(2));
  EXPECT_THAT(log.tree_parents.at({0, 0}), ElementsAre(-1));
  EXPECT_THAT(describe(log), HasSubstr("b300-1\n  transport    unknown\n  graph        2 rings, 2 trees\n"));
  EXPECT_THAT(rules_of(log), IsEmpty());
}

TEST(NcclGraph, ARingThatGoesToAndFroIsReportedWithItsLine) {
  const auto findings = evaluate(parse_nccl_log(graph_of({"0 1 2 3", "0 2 1 3"})));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "nccl-ring-order");
  EXPECT_EQ(findings[0].what, "NCCL's ring 1 goes between machines 4 times, and 2 would do");
  EXPECT_EQ(findings[0].evidence, "Channel 01/02 :    0 2 1 3");
}

// Each group of a job numbers its ranks from 0: which line is of which the log does not tell.
TEST(NcclGraph, GroupsOfAJobAreNotHeldAgainstEachOther) {
  std::string text;
  for (int group = 0; group < 2; ++group) {
    for (int rank = 0; rank < 8; ++rank) {
      const std::string host = fmt::format("b300-{}:10:10 [{}] NCCL INFO ", group + 1, rank);
      text +=
          fmt::format("{0}comm 0x1 rank {1} nranks 8 - Init COMPLETE\n{0}comm 0x2 rank {2} nranks 2 - Init COMPLETE\n",
                      host, rank, group);
      text += fmt::format("{}24 coll channels, 24 collnet channels, 16 nvls channels\n", host);
      text += fmt::format("{}2 coll channels, 2 collnet channels, 0 nvls channels\n", host);
      text += fmt::format("{}Channel 00/02 : 0 1\n{}Trees [0] -1/-1/-1->{}->{}\n", host, host, group, group - 1);
    }
  }
  EXPECT_THAT(rules_of(parse_nccl_log(text)), IsEmpty());
}

TEST(NcclGraph, LinesThatAreNoRingOrTreeAreLeftAlone) {
  spec::NcclLog log;
  for (const char* const line :
       {"Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "Channel 00/04 :", "Channel 99/04 : 0 1", "Channel 00/04 : 0 -1",
        "Channel x : 0 1", "Trees", "Trees [0]", "Trees [0] 1/2/3", "Trees [0] 1/2/3->0", "Trees [0] 1/2/3->-1->0",
        "Trees [70] 1/2/3->0->1", "Trees [x] 1/2/3->0->1"}) {
    add_nccl_log(log, fmt::format("a:1:1 [0] NCCL INFO {}\n", line));
    EXPECT_TRUE(log.rings.empty() && log.tree_parents.empty()) << line;
  }
  add_nccl_log(log, "a:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 [1] 1/-1/-1->0->-1\n");  // NCCL 2.7
  EXPECT_EQ(log.tree_parents.size(), 2U);
}

}  // namespace
}  // namespace yoke::check
