#include "yoke/link/link_survey.h"

#include <gtest/gtest.h>

namespace yoke::link {
namespace {

RailFacts facts_of(const char* interface) {
  RailFacts facts;
  if (*interface) facts.interface = LinkInterface{.name = interface};
  return facts;
}

// Rail A was measured in both directions, and from spark-1 also beside the other; at spark-2 there is no rail B.
PairResult measured_pair() {
  const RailRate forward{.rail = "A", .from = "spark-1", .to = "spark-2", .rate = BitsPerSecond{1.9e9}};
  RailRate back{.rail = "A", .from = "spark-2", .to = "spark-1", .rate = BitsPerSecond{1.2e9}};
  back.again = BitsPerSecond{1.8e9};
  RailRate together = forward;
  together.rate = BitsPerSecond{1.7e9};
  RailRate both_ways = forward;
  both_ways.rate = BitsPerSecond{1.6e9};
  RailLatency latency{.rail = "A", .sent = {{"spark-1", 6300, 0}, {"spark-2", 6300, 7}}};
  latency.rows = {{.size = 8, .min = Seconds{4e-6}}, {.size = 1024, .min = Seconds{6e-6}}};
  return {.a = "spark-1",
          .b = "spark-2",
          .transport = "tcp",
          .transport_reason = "no /dev/infiniband",
          .rails = {{"A", facts_of("enp1s0f0np0"), facts_of("eth7")}, {"B", facts_of("enP2p1s0f0np0"), facts_of("")}},
          .phases = {{.kind = LinkPhaseKind::kAlone, .rates = {forward}, .loads = {{"spark-1", 1, 0.1}}},
                     {.kind = LinkPhaseKind::kAlone, .rates = {back}},
                     {.kind = LinkPhaseKind::kTogether, .rates = {together}, .loads = {{"spark-2", 1, 0.4}}},
                     {.kind = LinkPhaseKind::kBothWays, .rates = {both_ways}}},
          .latencies = {latency},
          .counters = {{"spark-2", "A", "eth7", "rx_errors", 3}},
          .failures = {{"B", "no interface"}}};
}

TEST(LinkSurvey, AMeasurementHasEachRailInBothDirections) {
  const spec::Measurement measurement = measurement_of({.cluster = "lab", .pairs = {measured_pair()}});
  ASSERT_EQ(measurement.rails.size(), 4U);
  const spec::RailMeasurement forward = {.from = "spark-1",
                                         .to = "spark-2",
                                         .from_interface = "enp1s0f0np0",
                                         .to_interface = "eth7",
                                         .transport = "tcp",
                                         .alone = BitsPerSecond{1.9e9},
                                         .together = BitsPerSecond{1.7e9},
                                         .both_ways = BitsPerSecond{1.6e9},
                                         .taken = 0.4,
                                         .messages = 6300,
                                         .resent = 0,
                                         .latency = Seconds{4e-6},
                                         .failure = {}};
  EXPECT_EQ(measurement.rails[0], forward);
  const spec::RailMeasurement& back = measurement.rails[1];
  EXPECT_EQ(back.from_interface, "eth7");
  EXPECT_EQ(back.alone, BitsPerSecond{1.2e9});
  EXPECT_EQ(back.alone_again, BitsPerSecond{1.8e9});
  EXPECT_EQ(back.together, std::nullopt);
  EXPECT_FALSE(measurement.rails[0].is_lossy());
  EXPECT_TRUE(back.is_lossy());
  EXPECT_EQ(measurement.rails[2].failure, "no interface");
  EXPECT_EQ(measurement.rails[3].from_interface, "");
}

TEST(LinkSurvey, AMeasurementSaysWhatIsExpectedAndWhatElseWasSeen) {
  LinkTestResult result{.cluster = "lab",
                        .expected = LinkExpectation{BitsPerSecond{2e9}, "the cluster file"},
                        .pairs = {measured_pair(), measured_pair()},
                        .all_reduce_failure = "rank 1 is lost"};
  spec::Measurement measurement = measurement_of(result);
  EXPECT_EQ(measurement.expected, BitsPerSecond{2e9});
  EXPECT_EQ(measurement.expected_source, "the cluster file");
  EXPECT_EQ(measurement.transports, std::vector<std::string>{"tcp"});
  EXPECT_EQ(measurement.transport_reason, "no /dev/infiniband");
  EXPECT_EQ(measurement.counters.front(), (spec::CounterIncrease{"spark-2", "eth7", "rx_errors", 3}));
  EXPECT_EQ(measurement.all_reduce, std::nullopt);
  EXPECT_EQ(measurement.all_reduce_failure, "rank 1 is lost");
  result.all_reduce = AllReduceResult{.ranks = 2, .transport = "direct", .large_size = Bytes{1 << 24}};
  EXPECT_EQ(measurement_of(result).all_reduce->ranks, 2);
  EXPECT_EQ(measurement_of(result).all_reduce->large_size, Bytes{1 << 24});
}

}  // namespace
}  // namespace yoke::link
