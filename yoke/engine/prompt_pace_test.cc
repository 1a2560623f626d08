#include "yoke/engine/prompt_pace.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

TEST(PromptPace, AStepTakesHalfASecondAtMost) {
  PromptPace pace(512);
  EXPECT_EQ(pace.chunk(), 16);
  pace.took(16, Seconds{0.1});  // 160 tokens a second: 80 in half a second
  EXPECT_EQ(pace.chunk(), 64);
  pace.took(64, Seconds{0.45});
  EXPECT_EQ(pace.chunk(), 64);
  pace.took(64, Seconds{0.6});  // later tokens look back further
  EXPECT_EQ(pace.chunk(), 32);
}

TEST(PromptPace, StaysWithinItsBounds) {
  PromptPace pace(512);
  pace.took(16, Seconds{0});
  EXPECT_EQ(pace.chunk(), 512);
  pace.took(512, Seconds{1000});
  EXPECT_EQ(pace.chunk(), 16);
  PromptPace odd(500);
  odd.took(16, Seconds{0.001});
  EXPECT_EQ(odd.chunk(), 500);
  PromptPace small(7);
  EXPECT_EQ(small.chunk(), 7);
  small.took(7, Seconds{1000});
  EXPECT_EQ(small.chunk(), 7);
}

TEST(PromptPace, LearnsNothingFromTheEndOfAPrompt) {
  PromptPace pace(512);
  pace.took(16, Seconds{0.001});
  pace.took(3, Seconds{0.5});
  EXPECT_EQ(pace.chunk(), 512);
}

}  // namespace
}  // namespace yoke
