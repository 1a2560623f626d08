#include "yoke/engine/step_pace.h"

#include <gtest/gtest.h>

namespace yoke::engine {
namespace {

TEST(StepPace, AStepTakesHalfASecondAtMost) {
  StepPace pace(512);
  EXPECT_EQ(pace.budget().alone, 16);
  pace.took(16, 0, Seconds{0.1});  // 160 tokens a second: 80 in half a second
  EXPECT_EQ(pace.budget().alone, 64);
  pace.took(64, 0, Seconds{0.45});
  EXPECT_EQ(pace.budget().alone, 64);
  pace.took(64, 0, Seconds{0.6});  // later tokens look back further
  EXPECT_EQ(pace.budget().alone, 32);
}

TEST(StepPace, StaysWithinItsBounds) {
  StepPace pace(512);
  pace.took(16, 0, Seconds{0});
  EXPECT_EQ(pace.budget().alone, 512);
  pace.took(512, 0, Seconds{1000});
  EXPECT_EQ(pace.budget().alone, 16);
  StepPace odd(500);
  odd.took(16, 0, Seconds{0.001});
  EXPECT_EQ(odd.budget().alone, 500);
  StepPace small(7);
  EXPECT_EQ(small.budget().alone, 7);
  small.took(7, 0, Seconds{1000});
  EXPECT_EQ(small.budget().alone, 7);
}

TEST(StepPace, LearnsNothingFromTheEndOfAPrompt) {
  StepPace pace(512);
  pace.took(16, 0, Seconds{0.001});
  pace.took(3, 0, Seconds{0.5});
  EXPECT_EQ(pace.budget().alone, 512);
}

TEST(StepPace, APromptTakesAboutATokensTimeWhileOthersAnswer) {
  StepPace pace(512);
  EXPECT_EQ(pace.budget().with_others, 1) << "nothing is known yet";
  pace.took(16, 0, Seconds{0.016});  // a millisecond each
  pace.took(0, 4, Seconds{0.1});     // a step that only makes tokens
  EXPECT_EQ(pace.budget().with_others, 75);
  pace.took(75, 4, Seconds{0.1 + 75 * 0.004});  // beside others they cost more
  EXPECT_LT(pace.budget().with_others, 45);
  EXPECT_GE(pace.budget().with_others, 1);
  for (int i = 0; i < 50; ++i)
    pace.took(pace.budget().with_others, 4, Seconds{0.1 + 0.004 * static_cast<double>(pace.budget().with_others)});
  const double step = 0.1 + 0.004 * static_cast<double>(pace.budget().with_others);
  EXPECT_LE(step, 2 * 0.1);
  EXPECT_GE(pace.budget().with_others, 10);
}

TEST(StepPace, WhereATokenOfAPromptIsDearSeveralStepsSaveForIt) {
  StepPace pace(512);
  double sum = 0;
  std::int64_t read = 0;
  for (int step = 0; step < 1000; ++step) {
    const std::int64_t tokens = pace.budget().with_others;
    const double time = 0.01 + 0.05 * static_cast<double>(tokens);
    pace.took(tokens, 4, Seconds{time});
    if (step < 100) continue;
    sum += time;
    read += tokens;
  }
  EXPECT_LE(sum / 900, 2 * 0.01);
  EXPECT_GT(read, 50) << "the prompt goes on";
}

}  // namespace
}  // namespace yoke::engine
