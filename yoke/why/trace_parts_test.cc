#include "yoke/why/trace_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace yoke::why {
namespace {

using spec::RankTrace;

// Times in microseconds of the rank's clock.
class TraceMaker {
 public:
  TraceMaker(int rank, std::int64_t clock_offset_us) {
    trace_.rank = rank;
    trace_.node = "spark-" + std::to_string(rank + 1);
    if (rank > 0) trace_.clock = {{.at = 0, .offset = clock_offset_us * 1000, .error = 2000}};
  }
  TraceMaker& add(SpanKind kind, const std::string& name, std::int64_t begin, std::int64_t end, std::int32_t step = 1,
                  int peer = -1) {
    auto found = std::ranges::find(trace_.names, name);
    if (found == trace_.names.end()) found = trace_.names.insert(found, name);
    trace_.spans.push_back({.kind = kind,
                            .name = static_cast<std::int32_t>(found - trace_.names.begin()),
                            .step = step,
                            .peer = peer,
                            .begin = begin * 1000,
                            .duration = (end - begin) * 1000});
    return *this;
  }
  TraceMaker& compare_clock(std::int64_t at, std::int64_t offset) {
    trace_.clock.push_back({.at = at * 1000, .offset = offset * 1000, .error = 2000});
    return *this;
  }
  RankTrace trace() const { return trace_; }

 private:
  RankTrace trace_;
};

const TracePart* find_part(const RankParts& rank, PartKind kind, std::int64_t layer = -1) {
  for (const TracePart& part : rank.parts) {
    if (part.kind == kind && part.layer == layer) return &part;
  }
  return nullptr;
}

// Within 1 ms rank 1's clock is found to be slower by a tenth, so its slices become longer.
TEST(TraceParts, SlicesStayInsideOfEachOtherWhereClocksDrift) {
  const auto ranks = divide_traces({TraceMaker(0, 0).add(SpanKind::kStep, "a token", 0, 1000).trace(),
                                    TraceMaker(1, 0)
                                        .compare_clock(1000, 100)
                                        .add(SpanKind::kCompute, "o", 100, 500)
                                        .add(SpanKind::kCompute, "down", 500, 1000)
                                        .add(SpanKind::kStep, "a token", 0, 1000)
                                        .trace()});
  ASSERT_EQ(ranks[1].parts.size(), 3U);
  EXPECT_NEAR(ranks[1].parts[0].duration, 1100, 1e-6) << "the step";
  EXPECT_NEAR(ranks[1].parts[1].begin + ranks[1].parts[1].duration, ranks[1].parts[2].begin, 1e-6);
  EXPECT_NEAR(ranks[1].parts[2].begin + ranks[1].parts[2].duration, 1100, 1e-6);
}

// Rank 1's clock is 1 s behind. It comes to the all-reduce 40 us after rank 0, which waits for so long.
TEST(TraceParts, ARankWaitsUntilTheLastOneHasCome) {
  const auto ranks = divide_traces({TraceMaker(0, 0)
                                        .add(SpanKind::kCompute, "o", 1'000'000, 1'000'010)
                                        .add(SpanKind::kExchange, "all-reduce", 1'000'010, 1'000'080)
                                        .add(SpanKind::kStep, "a token", 1'000'000, 1'000'090)
                                        .trace(),
                                    TraceMaker(1, 1'000'000)
                                        .add(SpanKind::kCompute, "o", 0, 50)
                                        .add(SpanKind::kExchange, "all-reduce", 50, 80)
                                        .add(SpanKind::kStep, "a token", 0, 90)
                                        .trace()});
  EXPECT_NEAR(ranks[0].sums.waiting, 40e-6, 1e-9);
  EXPECT_NEAR(ranks[0].sums.transfer, 30e-6, 1e-9);
  EXPECT_NEAR(ranks[0].sums.rest(), 10e-6, 1e-9);
  EXPECT_NEAR(ranks[1].sums.waiting, 0, 1e-9);
  EXPECT_NEAR(ranks[1].sums.compute, 50e-6, 1e-9);
  const TracePart* const waiting = find_part(ranks[0], PartKind::kWaiting);
  ASSERT_TRUE(waiting);
  EXPECT_NEAR(waiting->begin, 10, 1e-6) << "microseconds from the first span of all";
  EXPECT_NEAR(waiting->duration, 40, 1e-6);
  EXPECT_FALSE(find_part(ranks[1], PartKind::kWaiting));
  EXPECT_NEAR(ranks[1].clock_error, 2e-6, 1e-12);
}

// In step 2 only one rank's exchange was kept; the n-th exchange of a name meets the n-th of the others.
TEST(TraceParts, ExchangesMeetByTheirPlaceInTheStep) {
  const auto ranks = divide_traces({TraceMaker(0, 0)
                                        .add(SpanKind::kExchange, "all-reduce", 0, 10)
                                        .add(SpanKind::kExchange, "all-reduce", 20, 60)
                                        .add(SpanKind::kExchange, "all-reduce", 100, 110, 2)
                                        .trace(),
                                    TraceMaker(1, 0)
                                        .add(SpanKind::kExchange, "all-reduce", 5, 10)
                                        .add(SpanKind::kExchange, "all-reduce", 50, 60)
                                        .trace()});
  EXPECT_NEAR(ranks[0].sums.waiting, 35e-6, 1e-9);
  EXPECT_NEAR(ranks[1].sums.waiting, 0, 1e-9);
}

TEST(TraceParts, OnlyWhoGetsWaitsForWhoGives) {
  const auto ranks = divide_traces({TraceMaker(0, 0)
                                        .add(SpanKind::kExchange, "plan", 10, 12, 1, 0)
                                        .add(SpanKind::kSend, "send", 20, 25, 1, 1)
                                        .trace(),
                                    TraceMaker(1, 0)
                                        .add(SpanKind::kExchange, "plan", 4, 13, 1, 0)
                                        .add(SpanKind::kReceive, "receive", 15, 26, 1, 0)
                                        .trace()});
  EXPECT_NEAR(ranks[0].sums.waiting, 0, 1e-9);
  EXPECT_NEAR(ranks[0].sums.transfer, 7e-6, 1e-9);
  EXPECT_NEAR(ranks[1].sums.waiting, 6e-6 + 5e-6, 1e-9);
}

TEST(TraceParts, ALayerBeginsWithItsNormAndEndsBeforeTheHead) {
  RankTrace trace = TraceMaker(0, 0)
                        .add(SpanKind::kCompute, "embedding", 0, 1)
                        .add(SpanKind::kCompute, "norms", 1, 2)
                        .add(SpanKind::kCompute, "q, k, v", 2, 4)
                        .add(SpanKind::kCompute, "attention", 4, 6)
                        .add(SpanKind::kExchange, "all-reduce", 6, 7)
                        .add(SpanKind::kCompute, "norms", 8, 9)
                        .add(SpanKind::kCompute, "q, k, v", 9, 10)
                        .add(SpanKind::kCompute, "down", 10, 12)
                        .add(SpanKind::kCompute, "rows of the head", 12, 13)
                        .add(SpanKind::kCompute, "head", 13, 14)
                        .add(SpanKind::kStep, "a token", 0, 15)
                        .trace();
  trace.first_layer = 4;
  const auto ranks = divide_traces({trace});
  const TracePart* const first = find_part(ranks[0], PartKind::kLayer, 4);
  const TracePart* const second = find_part(ranks[0], PartKind::kLayer, 5);
  ASSERT_TRUE(first && second);
  EXPECT_NEAR(first->begin, 1, 1e-9);
  EXPECT_NEAR(first->duration, 6, 1e-9);
  EXPECT_EQ(second->name, "layer 5");
  EXPECT_NEAR(second->duration, 4, 1e-9);
  // What contains others comes before them: viewers nest by that.
  EXPECT_EQ(ranks[0].parts.at(0).kind, PartKind::kStep);
  EXPECT_FALSE(find_part(ranks[0], PartKind::kLayer, 6));
}

}  // namespace
}  // namespace yoke::why
