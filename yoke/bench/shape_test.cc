#include "yoke/bench/shape.h"

#include <gtest/gtest.h>

namespace yoke::bench {
namespace {

using K = comm::CollectiveKind;

TEST(Shape, PartsAreRoundedDownToSixteenBytes) {
  // 1000 bytes over 3 ranks: 333 bytes each, rounded down to 320 bytes or 80 floats.
  const CollectiveShape gather = shape_of(K::kAllGather, 1000, 4, 2, 3);
  EXPECT_EQ(gather.count, 80U);
  EXPECT_EQ(gather.send, 80U);
  EXPECT_EQ(gather.receive, 240U);
  EXPECT_EQ(gather.send_in_place, 160U);
  EXPECT_EQ(row_bytes(gather, 4), 960U);
  const CollectiveShape scatter = shape_of(K::kReduceScatter, 1000, 2, 1, 3);
  EXPECT_EQ(scatter.count, 160U);
  EXPECT_EQ(scatter.receive_in_place, 160U);
  EXPECT_EQ(shape_of(K::kAllToAll, 31, 1, 0, 2).count, 0U) << "small sizes become 0";
  EXPECT_EQ(shape_of(K::kAllReduce, 1003, 4, 0, 3).count, 250U) << "whole buffers are not rounded to 16";
}

TEST(Shape, BandwidthFollowsTheFormulasOfNcclTests) {
  const double second = 1;
  const auto of = [&](K kind, int ranks) { return bandwidth_of(kind, 250'000'000, 4, ranks, second); };
  EXPECT_DOUBLE_EQ(of(K::kAllReduce, 2).algorithm, 1);
  EXPECT_DOUBLE_EQ(of(K::kAllReduce, 2).bus, 1);
  EXPECT_DOUBLE_EQ(of(K::kAllReduce, 4).bus, 1.5);
  EXPECT_DOUBLE_EQ(of(K::kAllReduce, 1).bus, 0);
  for (const K kind : {K::kAllGather, K::kReduceScatter, K::kGather, K::kScatter, K::kAllToAll}) {
    EXPECT_DOUBLE_EQ(of(kind, 4).algorithm, 4) << comm::to_string(kind);
    EXPECT_DOUBLE_EQ(of(kind, 4).bus, 3) << comm::to_string(kind);
  }
  for (const K kind : {K::kBroadcast, K::kReduce, K::kSendReceive}) {
    EXPECT_DOUBLE_EQ(of(kind, 4).algorithm, 1) << comm::to_string(kind);
    EXPECT_DOUBLE_EQ(of(kind, 4).bus, 1) << comm::to_string(kind);
  }
  EXPECT_EQ(bandwidth_of(K::kAllReduce, 1, 4, 2, 0).bus, 0) << "no time, no rate";
}

}  // namespace
}  // namespace yoke::bench
