#include "yoke/job/diagnosis.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace yoke {
namespace {

// Two nodes with two halves, a rank on each, and a clock of its own.
struct DiagnosisTest : testing::Test {
  Diagnosis diagnosis{{{"spark-1", 2}, {"spark-2", 2}}, {0, 1}};
  Instant start{};

  Instant at(double seconds) const { return start + to_chrono(Seconds{seconds}); }
  void heard(double seconds) {
    diagnosis.node_heard(0, at(seconds));
    diagnosis.node_heard(1, at(seconds));
  }
  void lost(int rank, const std::string& half, double seconds) {
    diagnosis.path_changed({.rank = rank, .peer = 1 - rank, .half = half, .why = "silent"}, at(seconds));
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

TEST_F(DiagnosisTest, SaysOutOfMemoryOnlyWithTheKernelsCount) {
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

TEST_F(DiagnosisTest, OneCutHalfIsSaidOnceAndNoCause) {
  lost(0, "B", 1);
  lost(1, "B", 1.1);
  EXPECT_TRUE(diagnosis.take_notices(at(1.2)).empty()) << "it may be part of something graver";
  heard(1.5);
  EXPECT_EQ(diagnosis.take_notices(at(1.5)),
            std::vector<std::string>{"half B between spark-1 and spark-2 is cut: going on with half A"});
  lost(0, "B", 2);
  EXPECT_TRUE(diagnosis.take_notices(at(3)).empty());
  EXPECT_FALSE(diagnosis.verdict(at(3)));
  diagnosis.path_changed({.rank = 0, .peer = 1, .half = "B", .state = PathState::kBack}, at(4));
  EXPECT_EQ(diagnosis.take_notices(at(4)), std::vector<std::string>{"half B between spark-1 and spark-2 is back"});
}

TEST_F(DiagnosisTest, BothCutHalvesAreACauseWhileBothNodesAreHeard) {
  lost(0, "A", 1);
  lost(1, "B", 1.05);
  heard(1.3);
  EXPECT_FALSE(diagnosis.verdict(at(1.3)));
  heard(1.5);
  const auto cause = diagnosis.verdict(at(1.5));
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, CauseKind::kHalvesCut);
  EXPECT_NE(cause->error.message().find("both halves between spark-1 and spark-2 are cut, while both nodes live"),
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
  diagnosis.begin_anew();
  EXPECT_FALSE(diagnosis.verdict(at(2)));
  lost(0, "B", 3);  // the new group finds it cut, too
  EXPECT_TRUE(diagnosis.take_notices(at(4)).empty());
  lost(0, "A", 5);
  heard(5.4);
  EXPECT_EQ(diagnosis.verdict(at(5.5))->kind, CauseKind::kHalvesCut);
}

TEST_F(DiagnosisTest, RanksThatAreNotThereAreNoEvidence) {
  lost(7, "A", 1);
  diagnosis.path_changed({.rank = 0, .peer = -1}, at(1));
  diagnosis.rank_ended({.rank = 2, .exit_status = 1}, at(1));
  diagnosis.rank_stopped(-1, at(1));
  EXPECT_FALSE(diagnosis.has_evidence());
}

}  // namespace
}  // namespace yoke
