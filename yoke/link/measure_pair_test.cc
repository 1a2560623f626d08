#include "yoke/link/measure_pair.h"

#include <gtest/gtest.h>

#include <deque>

#include "yoke/base/error.h"

namespace yoke::link {
namespace {

using namespace literals;

// Every rail carries the rate of the script's next entry, or the last one for good.
class ScriptedTransport final : public PairTransport {
 public:
  explicit ScriptedTransport(std::deque<double> gigabits) : gigabits_(std::move(gigabits)) {}

  LinkPhase move(LinkPhaseKind kind, const std::vector<RailFlow>& flows, Seconds) override {
    LinkPhase phase{.kind = kind};
    for (const RailFlow& flow : flows) {
      const bool forward = flow.direction == Direction::kForward;
      phase.rates.push_back({.rail = flow.rail == 0 ? "A" : "B",
                             .from = forward ? "spark-1" : "spark-2",
                             .to = forward ? "spark-2" : "spark-1",
                             .rate = BitsPerSecond{gigabits_.front() * 1e9}});
    }
    if (gigabits_.size() > 1) gigabits_.pop_front();
    ++moves;
    return phase;
  }
  RailLatency latency(std::size_t rail) override { return {.rail = rail == 0 ? "A" : "B"}; }

  int moves = 0;

 private:
  std::deque<double> gigabits_;
};

constexpr int kPhases = 7;  // two rails alone both ways, together both ways, both ways at once

PairResult phases_of(ScriptedTransport& transport, std::optional<BitsPerSecond> expected = BitsPerSecond{2e9}) {
  NodePair pair{.a = 0, .b = 1};
  for (const char* name : {"A", "B"}) pair.rails.push_back({.name = name});
  PairResult result{.a = "spark-1", .b = "spark-2", .transport = "tcp"};
  measure_phases(transport, pair, {.expected = expected}, result);
  EXPECT_EQ(result.phases.size(), kPhases);
  return result;
}

TEST(MeasurePhases, AHealthyLinkIsMeasuredOnce) {
  ScriptedTransport transport({1.99});
  phases_of(transport);
  EXPECT_EQ(transport.moves, kPhases);
}

TEST(MeasurePhases, AWindowThatFellShortIsMeasuredAgainAndBothAreKept) {
  ScriptedTransport transport({0.6, 1.99});
  const PairResult result = phases_of(transport);
  EXPECT_EQ(transport.moves, kPhases + 1);
  EXPECT_EQ(result.alone("A", "spark-1"), BitsPerSecond{0.6e9});
  EXPECT_EQ(result.phases[0].rates[0].again, BitsPerSecond{1.99e9});
  EXPECT_EQ(result.phases[1].rates[0].again, std::nullopt);
  ScriptedTransport together({1.99, 1.99, 1.99, 1.99, 0.9, 1.9});
  const PairResult shared = phases_of(together);
  const LinkPhase* phase = shared.find(LinkPhaseKind::kTogether, "spark-1");
  EXPECT_EQ(phase->sum("spark-1"), BitsPerSecond{1.8e9});
  ASSERT_EQ(phase->rates.size(), 2U);
  for (const RailRate& rate : phase->rates) EXPECT_EQ(rate.again, BitsPerSecond{1.9e9});
  EXPECT_EQ(together.moves, kPhases + 1);
}

TEST(MeasurePhases, WhatStaysSlowIsReported) {
  ScriptedTransport transport({0.3, 0.25});
  const PairResult result = phases_of(transport);
  EXPECT_EQ(result.alone("A", "spark-1"), BitsPerSecond{0.3e9});
  EXPECT_EQ(result.phases[0].rates[0].again, BitsPerSecond{0.25e9});
  EXPECT_EQ(result.alone("B", "spark-2"), BitsPerSecond{0.25e9});
  EXPECT_EQ(transport.moves, kPhases + 4) << "together they carry what each carries alone: nothing falls short there";
}

TEST(MeasurePhases, WhereNothingIsExpectedOrTcpIsTheLimitNothingFallsShort) {
  ScriptedTransport unshaped({0.1});
  phases_of(unshaped, std::nullopt);
  EXPECT_EQ(unshaped.moves, kPhases);
  ScriptedTransport floor({40});
  phases_of(floor, BitsPerSecond{100e9});
  EXPECT_EQ(floor.moves, kPhases);
}

}  // namespace
}  // namespace yoke::link
