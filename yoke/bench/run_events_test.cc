#include "yoke/bench/run_events.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/bench/sample_run_testing.h"

namespace yoke::bench {
namespace {

std::string written(const CollectiveRun& run) {
  std::string text;
  EventWriter writer([&](std::string_view line) { text += line; });
  writer.begin(run);
  for (const CollectiveRow& row : run.rows) writer.row(run, row);
  writer.end(run);
  return text;
}

TEST(RunEvents, AreReadBackAsTheyWereWrittenHoweverTheyAreCut) {
  const CollectiveRun run = sample_run();
  const std::string text = written(run);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
    EventReader reader(nullptr);
    for (std::size_t at = 0; at < text.size(); at += piece) reader.take(std::string_view(text).substr(at, piece));
    EXPECT_EQ(print_json(to_json(reader.finish(std::nullopt))), print_json(to_json(run))) << "pieces of " << piece;
  }
}

TEST(RunEvents, KeepTheRowsThatCameBeforeAFailure) {
  const CollectiveRun run = sample_run();
  const std::string text = written(run);
  EventReader reader(nullptr);
  reader.take(text.substr(0, text.rfind("{\"end\"")));
  const CollectiveRun& broken = reader.finish(Error(ErrorCode::kUnavailable, "rank 1 is gone"));
  EXPECT_EQ(broken.rows.size(), run.rows.size());
  ASSERT_TRUE(broken.failure);
  EXPECT_EQ(to_error(*broken.failure).message(), "rank 1 is gone");
}

TEST(RunEvents, ThrowTheFailureWhereNothingCameBefore) {
  EventReader reader(nullptr);
  EXPECT_ERROR(reader.finish(Error(ErrorCode::kUnavailable, "no rank started")), ErrorCode::kUnavailable,
               "no rank started");
}

TEST(RunEvents, RefuseWhatIsNoEvent) {
  EventReader reader(nullptr);
  EXPECT_ERROR(reader.take("{\"other\": 1}\n"), ErrorCode::kInvalid, "rank 0 wrote something else than its run");
}

}  // namespace
}  // namespace yoke::bench
