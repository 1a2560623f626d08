#include "yoke/base/progress.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using namespace literals;

struct Recorder {
  explicit Recorder(ProgressStyle style) {
    options = {.style = style, .write = [this](std::string_view text) { written.emplace_back(text); }, .clock = &clock};
  }
  FakeClock clock;
  std::vector<std::string> written;
  ProgressOptions options;
};

TEST(Progress, ReportsNothingForWorkUnderTwoSeconds) {
  Recorder recorder(ProgressStyle::kTerminal);
  {
    Progress progress("loading", 100, recorder.options);
    for (int i = 0; i < 19; ++i) {
      progress.update(i);
      recorder.clock.advance(100_ms);
    }
  }
  EXPECT_TRUE(recorder.written.empty());
}

TEST(Progress, KeepsOneLiveLineOnATerminalAndRemovesItAtTheEnd) {
  Recorder recorder(ProgressStyle::kTerminal);
  {
    Progress progress("loading", 100, recorder.options);
    recorder.clock.advance(4_s);
    progress.update(50, "layer 3");
    progress.update(51);  // too soon to be drawn again
    recorder.clock.advance(1_s);
    progress.update(75);
  }
  ASSERT_EQ(recorder.written.size(), 3U);
  EXPECT_EQ(recorder.written[0], "\r\x1b[Kloading: 50%, 4 s left, 4 s so far (layer 3)");
  EXPECT_EQ(recorder.written[2], "\r\x1b[K");
}

TEST(Progress, NeverFillsATerminalsLine) {
  Recorder recorder(ProgressStyle::kTerminal);
  recorder.options.columns = [] { return 20; };
  Progress progress("measuring the rails", 0, recorder.options);
  recorder.clock.advance(4_s);
  progress.update(0, "each rail alone, then both together");
  ASSERT_EQ(recorder.written.size(), 1U);
  EXPECT_EQ(recorder.written[0], "\r\x1b[Kmeasuring the ra...") << "19 of 20 columns";
}

TEST(Progress, LogsEveryTenSecondsElsewhere) {
  Recorder recorder(ProgressStyle::kLog);
  Progress progress("copying", 0, recorder.options);
  for (int second = 0; second < 25; ++second) {
    progress.update(second);
    recorder.clock.advance(1_s);
  }
  ASSERT_EQ(recorder.written.size(), 2U);
  EXPECT_EQ(recorder.written[0], "copying: 10 s so far");
}

TEST(Progress, IsSilentWhenQuiet) {
  Recorder recorder(ProgressStyle::kQuiet);
  Progress progress("copying", 10, recorder.options);
  recorder.clock.advance(60_s);
  progress.update(5);
  EXPECT_TRUE(recorder.written.empty());
}

}  // namespace
}  // namespace yoke
