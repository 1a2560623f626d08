#include "yoke/spec/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::spec {
namespace {

Instant at(std::int64_t nanoseconds) { return Instant(std::chrono::nanoseconds(nanoseconds)); }

TEST(SpanLog, KeepsWhatFindsRoomAndCountsTheRest) {
  SpanLog log(3);
  log.begin_step(1);
  for (int i = 0; i < 5; ++i) log.add({.name = "norms", .begin = at(i), .end = at(i + 1)});
  EXPECT_EQ(log.spans().size(), 3U);
  EXPECT_EQ(log.dropped(), 2);
}

TEST(SpanLog, AStepWithoutTokensLeavesNothing) {
  SpanLog log(4);
  log.begin_step(1);
  log.add({.name = "norms", .begin = at(1), .end = at(2)});
  log.begin_step(2);
  for (int i = 0; i < 9; ++i) log.add({.name = "plan", .begin = at(3), .end = at(4)});
  log.drop_step();
  EXPECT_EQ(log.spans().size(), 1U);
  EXPECT_EQ(log.dropped(), 0);
  log.clear();
  EXPECT_TRUE(log.spans().empty());
}

TEST(RankTrace, GivesBackWhatWentIn) {
  SpanLog log(10);
  log.begin_step(7);
  log.add(
      {.kind = SpanKind::kCompute, .name = "attention", .begin = at(5'000'000'000'000), .end = at(5'000'000'001'500)});
  log.add({.kind = SpanKind::kReceive,
           .name = "receive",
           .peer = 3,
           .begin = at(4'999'999'999'000),
           .end = at(5'000'000'002'000),
           .bytes = 8192});
  RankTrace trace = trace_of(log);
  trace.rank = 1;
  trace.node = "spark-2";
  trace.stage = 2;
  trace.first_layer = 16;
  trace.clock = {{.at = 10, .offset = -7, .error = 2}};
  const auto back = from_json<RankTrace>(parse_json(print_json(to_json(trace)), "a trace"));
  EXPECT_EQ(back.spans, trace.spans);
  EXPECT_EQ(back.names, trace.names);
  EXPECT_EQ(back.clock.at(0).offset, -7);
  EXPECT_EQ(back.first_layer, 16);
  EXPECT_EQ(back.spans.at(1).peer, 3);
}

// Other nodes write it: what it says is looked at before it is used.
TEST(RankTrace, SpansThatCannotBeAreRefused) {
  for (const char* spans : {"0 0 1 -1 5 1 0", "0 0 1 -1 5 1\n", "9 0 1 -1 5 1 0\n", "1 1 1 -1 5 1 0\n",
                            "1 0 1 -1 5 -1 0\n", "1 0 1 -1 x 1 0\n", "1 0 99999999999999999999 -1 5 1 0\n"}) {
    Document document = Document::map({{"rank", Document::number(std::int64_t{0})},
                                       {"node", Document::string("a")},
                                       {"names", Document::list({Document::string("norms")})},
                                       {"spans", Document::string(spans)}});
    EXPECT_EQ(error_of([&] { from_json<RankTrace>(document); }).code(), ErrorCode::kInvalid) << spans;
  }
}

TEST(RankTrace, BetweenTwoMarksTheOffsetChangesEvenly) {
  RankTrace trace;
  EXPECT_EQ(trace.common_time(500), 500);
  trace.clock = {{.at = 1000, .offset = 100, .error = 5}, {.at = 3000, .offset = 300, .error = 9}};
  EXPECT_EQ(trace.common_time(0), 100) << "before the first mark its offset holds";
  EXPECT_EQ(trace.common_time(2000), 2200);
  EXPECT_EQ(trace.common_time(9000), 9300);
  EXPECT_EQ(trace.clock_error(), 9);
}

}  // namespace
}  // namespace yoke::spec
