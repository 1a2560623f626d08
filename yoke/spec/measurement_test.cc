#include "yoke/spec/measurement.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"

namespace yoke {
namespace {

// As `yoke link test --json` prints it, shortened to one half and what is read of it.
constexpr std::string_view kLinkTest = R"({
  "schema": 1, "cluster": "lab", "expected": {"half_rate": 2e9, "source": "the cluster file"},
  "pairs": [{
    "a": "spark-1", "b": "spark-2", "transport": "tcp", "transport_reason": "no /dev/infiniband", "streams": 1,
    "halves": [
      {"half": "A", "a": {"interface": {"name": "enp1s0f0np0", "mtu": 9000}}, "b": {"interface": {"name": "eth7"}}},
      {"half": "B", "a": {"interface": {"name": "enP2p1s0f0np0"}}, "b": {}}],
    "phases": [
      {"kind": "alone", "rates": [{"half": "A", "from": "spark-1", "to": "spark-2", "rate": 1.9e9, "retransmits": 0}]},
      {"kind": "alone", "rates": [{"half": "A", "from": "spark-2", "to": "spark-1", "rate": 1.8e9, "retransmits": 0}]},
      {"kind": "together", "rates": [{"half": "A", "from": "spark-1", "to": "spark-2", "rate": 1.7e9}]},
      {"kind": "both-ways", "rates": [{"half": "A", "from": "spark-1", "to": "spark-2", "rate": 1.6e9}]}],
    "latencies": [{"half": "A", "rows": [{"size": 8, "min": 4e-6, "p50": 5e-6}, {"size": 1024, "min": 6e-6}],
                   "sent": [{"from": "spark-1", "messages": 6300, "resent": 0},
                            {"from": "spark-2", "messages": 6300, "resent": 7}]}],
    "counters": [{"node": "spark-2", "half": "A", "interface": "eth7", "name": "rx_errors", "change": 3}],
    "failures": [{"half": "B", "message": "no interface"}]}],
  "all_reduce": {"ranks": 2, "carrier": "direct", "new_key": 1,
                 "time_16k": 0.0001, "large_size": 16777216, "large_bus_bandwidth": 4e8},
  "findings": []})";

TEST(Measurement, IsReadFromALinkTest) {
  const Measurement measurement = measurement_from_link_test(parse_json(kLinkTest, "test"));
  EXPECT_EQ(measurement.expected, BitsPerSecond{2e9});
  EXPECT_EQ(measurement.transports, std::vector<std::string>{"tcp"});
  ASSERT_EQ(measurement.halves.size(), 4U);
  const HalfMeasurement forth = {.from = "spark-1",
                                 .to = "spark-2",
                                 .from_interface = "enp1s0f0np0",
                                 .to_interface = "eth7",
                                 .transport = "tcp",
                                 .alone = BitsPerSecond{1.9e9},
                                 .together = BitsPerSecond{1.7e9},
                                 .both_ways = BitsPerSecond{1.6e9},
                                 .messages = 6300,
                                 .resent = 0,
                                 .latency = Seconds{4e-6},
                                 .failure = {}};
  EXPECT_EQ(measurement.halves[0], forth);
  EXPECT_EQ(measurement.halves[1].from_interface, "eth7");
  EXPECT_EQ(measurement.halves[1].alone, BitsPerSecond{1.8e9});
  EXPECT_EQ(measurement.halves[1].together, std::nullopt);
  EXPECT_FALSE(measurement.halves[0].is_lossy());
  EXPECT_TRUE(measurement.halves[1].is_lossy());
  EXPECT_EQ(measurement.halves[2].failure, "no interface");
  EXPECT_EQ(measurement.counters, (std::vector<CounterIncrease>{{"spark-2", "eth7", "rx_errors", 3}}));
  EXPECT_EQ(measurement.all_reduce->ranks, 2);
  EXPECT_EQ(measurement.all_reduce_failure, std::nullopt);
  EXPECT_EQ(measurement.transport_reason, "no /dev/infiniband");
  EXPECT_EQ(measurement_from_json(parse_json(print_json(to_json(measurement)), "round")), measurement);
}

TEST(Measurement, TellsThatTheAllReduceFailed) {
  const Measurement measurement = measurement_from_link_test(parse_json(
      R"({"pairs": [], "all_reduce_missing": "rank 1 is lost", "all_reduce_failure": "rank 1 is lost"})", "test"));
  EXPECT_EQ(measurement.all_reduce, std::nullopt);
  EXPECT_EQ(measurement.all_reduce_failure, "rank 1 is lost");
  EXPECT_EQ(measurement_from_json(parse_json(print_json(to_json(measurement)), "round")), measurement);
}

TEST(Measurement, ARateByTcpIsAFloorWhereMuchIsExpected) {
  const BitsPerSecond spark{100e9}, server{400e9}, lab{2e9};
  EXPECT_TRUE(is_judged("rdma", BitsPerSecond{60e9}, spark));
  EXPECT_FALSE(is_judged("tcp", BitsPerSecond{60e9}, spark));
  EXPECT_TRUE(is_judged("tcp", BitsPerSecond{12.9e9}, spark));
  EXPECT_FALSE(is_judged("tcp", BitsPerSecond{60e9}, server)) << "15% of it, and what TCP gives";
  EXPECT_TRUE(is_judged("tcp", BitsPerSecond{1.5e9}, lab));
}

TEST(Measurement, OfAnotherKindIsRefusedByName) {
  for (const char* text : {"[]", R"({"pairs": 3})", R"({"pairs": [{"a": "x"}]})", R"({"expected": {}})",
                           R"({"all_reduce": {"ranks": 2}})"}) {
    const auto read = try_to([&] { return measurement_from_link_test(parse_json(text, "test")); });
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), ErrorCode::kInvalid);
    EXPECT_NE(read.error().message().find("test"), std::string::npos) << read.error().message();
  }
}

}  // namespace
}  // namespace yoke
