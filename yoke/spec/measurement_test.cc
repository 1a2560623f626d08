#include "yoke/spec/measurement.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::spec {
namespace {

TEST(Measurement, IsReadAsItIsWritten) {
  Measurement measurement = {.expected = BitsPerSecond{2e9},
                             .expected_source = "the cluster file",
                             .transports = {"tcp"},
                             .transport_reason = "no /dev/infiniband",
                             .rails = {{.from = "spark-1",
                                        .to = "spark-2",
                                        .from_interface = "enp1s0f0np0",
                                        .to_interface = "eth7",
                                        .transport = "tcp",
                                        .alone = BitsPerSecond{1.9e9},
                                        .together = BitsPerSecond{1.7e9},
                                        .both_ways = BitsPerSecond{1.6e9},
                                        .alone_again = BitsPerSecond{1.8e9},
                                        .taken = 0.1,
                                        .messages = 6300,
                                        .resent = 7,
                                        .latency = Seconds{4e-6},
                                        .failure = "no interface"}},
                             .counters = {{"spark-2", "eth7", "rx_errors", 3}}};
  const auto round_trip = [&] { return from_json<Measurement>(parse_json(print_json(to_json(measurement)), "round")); };
  EXPECT_EQ(round_trip(), measurement);
  measurement.all_reduce = AllReduceMeasurement{.ranks = 2,
                                                .transport = "direct",
                                                .small_time = Seconds{1e-4},
                                                .large_size = Bytes{16777216},
                                                .large_bus_bandwidth = BytesPerSecond{4e8}};
  measurement.all_reduce_failure = "rank 1 is lost";
  EXPECT_EQ(round_trip(), measurement);
}

TEST(Measurement, ARateByTcpIsAFloorWhereMuchIsExpected) {
  const BitsPerSecond spark{100e9}, server{400e9}, lab{2e9};
  EXPECT_TRUE(is_comparable("rdma", BitsPerSecond{60e9}, spark));
  EXPECT_FALSE(is_comparable("tcp", BitsPerSecond{60e9}, spark));
  EXPECT_TRUE(is_comparable("tcp", BitsPerSecond{12.9e9}, spark));
  EXPECT_FALSE(is_comparable("tcp", BitsPerSecond{60e9}, server)) << "15% of it, and what TCP gives";
  EXPECT_TRUE(is_comparable("tcp", BitsPerSecond{1.5e9}, lab));
}

TEST(Measurement, OfAnotherKindIsRefusedByName) {
  for (const char* text : {"[]", R"({"rails": 3})", R"({"expected_source": "", "rails": [{"from": "x"}]})"}) {
    EXPECT_ERROR(from_json<Measurement>(parse_json(text, "test")), ErrorCode::kInvalid, "test");
  }
}

}  // namespace
}  // namespace yoke::spec
