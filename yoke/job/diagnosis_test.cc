#include "yoke/job/diagnosis.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace yoke::job {
namespace {

// Two nodes with two rails, a rank on each, and a clock of its own.
struct DiagnosisTest : testing::Test {
  Diagnosis diagnosis{{{"spark-1", 2}, {"spark-2", 2}}, {0, 1}};
  Instant start{};

  Instant at(double seconds) const { return start + to_chrono(Seconds{seconds}); }
  void heard(double seconds) {
    diagnosis.node_heard(0, at(seconds));
    diagnosis.node_heard(1, at(seconds));
  }
  void lost(int rank, const std::string& rail, double seconds) {
    diagnosis.path_changed({.rank = rank, .peer = 1 - rank, .rail = rail, .why = "silent"}, at(seconds));
  }
};

TEST_F(DiagnosisTest, FindsNothingWhereAllIsWell) {
  heard(0);
  diagnosis.rank_ended({.rank = 0}, at(1));
  diagnosis.rank_ended({.rank = 1, .exit_status = 143, .signal = SIGTERM, .ended_by_us = true}, at(1));
  EXPECT_FALSE(diagnosis.verdict(at(100)));
}

TEST_F(DiagnosisTest, NamesAKilledRankAtOnce) {
  diagnosis.rank_ended({.rank = 1, .exit_status = 137, .signal = SIGKILL}, at(1));
  const auto cause = diagnosis.verdict(at(1));
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, CauseKind::kRankKilled);
  EXPECT_EQ(cause->rank, 1);
  EXPECT_EQ(cause->exit_status, 137);
  EXPECT_EQ(cause->error.message(), "rank 1 on spark-2 was killed by signal 9 (SIGKILL)");
}

TEST_F(DiagnosisTest, ReportsOutOfMemoryOnlyWithTheKernelsCount) {
  diagnosis.rank_ended({.rank = 1, .exit_status = 137, .signal = SIGKILL, .out_of_memory = true}, at(1));
  EXPECT_EQ(diagnosis.verdict(at(1))->kind, CauseKind::kOutOfMemory);
  EXPECT_EQ(diagnosis.verdict(at(1))->error.code(), ErrorCode::kExhausted);
}

TEST_F(DiagnosisTest, PrefersTheDeathToTheExitThatItCaused) {
  heard(1);
  lost(0, "", 1);
  diagnosis.rank_ended({.rank = 0, .exit_status = 7}, at(1.01));  // overtakes the message of the death
  EXPECT_FALSE(diagnosis.verdict(at(1.1)));
  diagnosis.rank_ended({.rank = 1, .exit_status = 137, .signal = SIGKILL}, at(1.2));
  EXPECT_EQ(diagnosis.verdict(at(1.2))->kind, CauseKind::kRankKilled);
}

TEST_F(DiagnosisTest, PrefersTheExitOfARankThatHadLostNobody) {
  heard(1);
  diagnosis.group_left({.rank = 0, .why = "rank 1 is gone"}, at(1));
  diagnosis.rank_ended({.rank = 0, .exit_status = 7}, at(1.01));
  diagnosis.rank_ended({.rank = 1, .exit_status = 3}, at(1.02));
  heard(1.4);
  EXPECT_EQ(diagnosis.verdict(at(1.5))->exit_status, 3);
}

TEST_F(DiagnosisTest, WaitsForASilentNodeBeforeItBlamesWhoExited) {
  diagnosis.node_heard(0, at(2.1));
  diagnosis.node_heard(1, at(1));  // silent since
  lost(0, "", 2.2);
  diagnosis.rank_ended({.rank = 0, .exit_status = 7}, at(2.2));
  diagnosis.node_heard(0, at(2.7));
  EXPECT_FALSE(diagnosis.verdict(at(2.8)));
  diagnosis.node_lost(1, CauseKind::kNodeDead, Error(ErrorCode::kUnavailable, "node spark-2 is dead"), at(3.5));
  EXPECT_EQ(diagnosis.verdict(at(3.5))->kind, CauseKind::kNodeDead);
}

TEST_F(DiagnosisTest, WaitsForASilentNodeForAFewSecondsAtMost) {
  diagnosis.node_heard(1, at(0));
  diagnosis.rank_ended({.rank = 0, .exit_status = 7}, at(1));
  EXPECT_FALSE(diagnosis.verdict(at(4.9)));
  EXPECT_EQ(diagnosis.verdict(at(5.1))->kind, CauseKind::kRankExited);
}

TEST_F(DiagnosisTest, OneCutRailIsSaidOnceAndNoCause) {
  lost(0, "B", 1);
  lost(1, "B", 1.1);
  EXPECT_TRUE(diagnosis.take_notices(at(1.2)).empty()) << "it may be part of something graver";
  heard(1.5);
  EXPECT_EQ(diagnosis.take_notices(at(1.5)),
            std::vector<std::string>{"rail B between spark-1 and spark-2 is cut: going on with rail A"});
  lost(0, "B", 2);
  EXPECT_TRUE(diagnosis.take_notices(at(3)).empty());
  EXPECT_FALSE(diagnosis.verdict(at(3)));
  diagnosis.path_changed({.rank = 0, .peer = 1, .rail = "B", .state = PathState::kBack}, at(4));
  EXPECT_EQ(diagnosis.take_notices(at(4)), std::vector<std::string>{"rail B between spark-1 and spark-2 is back"});
}

// In a ring of three a node's rails A and B lead to the next node, C and D to the one before, and the paths of B and D
// between two neighbours share one cable's rail.
TEST_F(DiagnosisTest, ACutRailOfARingIsNamedOnceWithBothItsEnds) {
  const auto ring_node = [](const char* name, const char* next, const char* before) {
    return DiagnosedNode{name,
                         4,
                         {{"enp1s0f0np0", std::string(next) + "A"},
                          {"enP2p1s0f0np0", std::string(next) + "B"},
                          {"enp1s0f1np1", std::string(before) + "A"},
                          {"enP2p1s0f1np1", std::string(before) + "B"}}};
  };
  Diagnosis ring(
      {ring_node("spark-1", "1-2", "3-1"), ring_node("spark-2", "2-3", "1-2"), ring_node("spark-3", "3-1", "2-3")},
      {0, 1, 2});
  for (const int peer : {1, 2}) {
    for (const char* rail : {"B", "D"}) ring.path_changed({.rank = 0, .peer = peer, .rail = rail}, at(1));
  }
  EXPECT_EQ(ring.take_notices(at(2)),
            (std::vector<std::string>{
                "rail B of spark-1 (enP2p1s0f0np0, to rail D of spark-2) is cut: going on with rail A",
                "rail D of spark-1 (enP2p1s0f1np1, to rail B of spark-3) is cut: going on with rail C"}));
  EXPECT_TRUE(ring.take_notices(at(3)).empty());
  for (const char* rail : {"B", "D"})
    ring.path_changed({.rank = 0, .peer = 1, .rail = rail, .state = PathState::kBack}, at(4));
  EXPECT_EQ(ring.take_notices(at(4)),
            std::vector<std::string>{"rail B of spark-1 (enP2p1s0f0np0, to rail D of spark-2) is back"});
}

TEST_F(DiagnosisTest, BothCutRailsAreACauseWhileBothNodesAreHeard) {
  lost(0, "A", 1);
  lost(1, "B", 1.05);
  heard(1.3);
  EXPECT_FALSE(diagnosis.verdict(at(1.3)));
  heard(1.5);
  const auto cause = diagnosis.verdict(at(1.5));
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, CauseKind::kRailsCut);
  EXPECT_NE(cause->error.message().find("both rails between spark-1 and spark-2 are cut, while both nodes live"),
            std::string::npos)
      << cause->error.message();
  EXPECT_TRUE(diagnosis.take_notices(at(1.5)).empty());
}

TEST_F(DiagnosisTest, AStoppedRankIsNotTakenForCutCables) {
  lost(0, "A", 1);
  lost(0, "B", 1);
  diagnosis.rank_stopped(1, at(1.1));
  EXPECT_EQ(diagnosis.verdict(at(1.1))->kind, CauseKind::kRankStopped);
}

TEST_F(DiagnosisTest, ForgetsWhatIsOverButNotWhatItSaid) {
  lost(0, "B", 1);
  diagnosis.take_notices(at(2));
  diagnosis.rank_ended({.rank = 1, .exit_status = 137, .signal = SIGKILL}, at(2));
  diagnosis.reset();
  EXPECT_FALSE(diagnosis.verdict(at(2)));
  lost(0, "B", 3);  // the new group finds it cut, too
  EXPECT_TRUE(diagnosis.take_notices(at(4)).empty());
  lost(0, "A", 5);
  heard(5.4);
  EXPECT_EQ(diagnosis.verdict(at(5.5))->kind, CauseKind::kRailsCut);
}

TEST_F(DiagnosisTest, RanksThatAreNotThereAreNoEvidence) {
  lost(7, "A", 1);
  diagnosis.path_changed({.rank = 0, .peer = -1}, at(1));
  diagnosis.rank_ended({.rank = 2, .exit_status = 1}, at(1));
  diagnosis.rank_stopped(-1, at(1));
  EXPECT_FALSE(diagnosis.has_evidence());
}

}  // namespace
}  // namespace yoke::job
