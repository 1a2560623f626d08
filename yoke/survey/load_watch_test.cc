#include "yoke/survey/load_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "yoke/base/clock.h"

namespace yoke::survey {
namespace {

using namespace literals;

ProcessorSample sample_at(double at, double busy, double own, std::string machine = "m") {
  return {.at = {at}, .busy = {busy}, .own = {own}, .cores = 4, .machine = std::move(machine)};
}

TEST(LoadWatch, WhatTheRanksUseThemselvesIsNotTaken) {
  const std::array before = {sample_at(10, 100, 1)};
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{sample_at(12, 106, 7)}), 0);
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{sample_at(12, 106, 3)}), 0.5);  // 3 cores busy, 1 of them ours
}

TEST(LoadWatch, NodesOfALabAreOneMachineThatBothUse) {
  const std::array before = {sample_at(10, 100, 1), sample_at(50, 100, 2)};
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{sample_at(11, 103, 2.5), sample_at(51, 103, 3.5)}), 0);
}

TEST(LoadWatch, TheBusiestNodeCounts) {
  const std::array before = {sample_at(10, 100, 1, "head"), sample_at(10, 100, 1, "other")};
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{sample_at(11, 101, 2, "head"), sample_at(11, 104, 2, "other")}),
                   0.75);
}

TEST(LoadWatch, AnswersThatMakeNoSenseCountAsNothing) {
  const std::array before = {sample_at(10, 100, 1)};
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{sample_at(9, 900, 1)}), 0) << "its clock went back";
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{sample_at(11, 900, 1, "rebooted")}), 0);
  ProcessorSample without_cores = sample_at(11, 900, 1);
  without_cores.cores = 0;
  EXPECT_DOUBLE_EQ(taken_between(before, std::array{without_cores}), 0);
}

// While it runs, while nobody has waited for it, and after that.
TEST(LoadWatch, AChildsTimeIsOurs) {
  const ProcessorSample before = sample_processors();
  const pid_t child = fork();
  if (child == 0) {
    while (std::clock() < CLOCKS_PER_SEC / 4) {
    }
    _exit(0);
  }
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_GE((sample_processors().own - before.own).value, 0.2);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_GE((sample_processors().own - before.own).value, 0.2);
}

}  // namespace
}  // namespace yoke::survey
