#include "yoke/comm/operation.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"

namespace yoke::comm {
namespace {

TEST(Operation, IsRefusedWhereARootOrPeerDoesNotExist) {
  int value = 0;
  for (const auto kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kGather,
                          CollectiveKind::kScatter, CollectiveKind::kSend, CollectiveKind::kReceive}) {
    for (const int root : {-1, 2}) {
      const Collective operation{.kind = kind, .send = &value, .receive = &value, .count = 1, .root = root};
      EXPECT_ERROR(check_operation(operation, 0, 2), ErrorCode::kInvalid,
                   fmt::format("there is no rank {} among 2", root))
          << to_string(kind) << root;
    }
  }
  const Collective ring{
      .kind = CollectiveKind::kSendReceive, .send = &value, .receive = &value, .count = 1, .source = 9};
  EXPECT_ERROR(check_operation(ring, 0, 2), ErrorCode::kInvalid, "there is no rank 9 among 2");
}

TEST(Operation, IsRefusedWithoutABufferThatItNeeds) {
  int value = 0;
  const Collective no_send{.kind = CollectiveKind::kAllReduce, .receive = &value, .count = 1};
  const Collective no_receive{.kind = CollectiveKind::kAllReduce, .send = &value, .count = 1};
  EXPECT_ERROR(check_operation(no_send, 0, 2), ErrorCode::kInvalid, "the buffer to send is missing");
  EXPECT_ERROR(check_operation(no_receive, 0, 2), ErrorCode::kInvalid, "the buffer to receive is missing");
  EXPECT_NO_THROW(check_operation({.kind = CollectiveKind::kAllReduce, .count = 0}, 0, 2));
  EXPECT_NO_THROW(check_operation({.kind = CollectiveKind::kReduce, .send = &value, .count = 1, .root = 1}, 0, 2));
}

TEST(Operation, ReportsWhatItIs) {
  EXPECT_EQ(signature({}), "barrier");
  EXPECT_EQ(
      signature({.kind = CollectiveKind::kAllReduce, .count = 8, .type = tensor::DType::kBf16, .op = ReduceOp::kAvg}),
      "all-reduce of 8 bf16 (avg)");
  EXPECT_EQ(signature({.kind = CollectiveKind::kScatter, .count = 8, .root = 3}), "scatter of 8 f32 from rank 3");
  EXPECT_EQ(signature({.kind = CollectiveKind::kSendReceive, .count = 1, .root = 3, .source = 2}),
            "send-receive of 1 f32 to rank 3 and from rank 2");
}

TEST(Operation, AGroupAscendsAndContainsTheRank) {
  EXPECT_EQ(place_in_group({1, 3}, 3, 4), 1);
  EXPECT_ERROR(place_in_group({3, 1}, 3, 4), ErrorCode::kInvalid, "the ranks must ascend");
  EXPECT_ERROR(place_in_group({1, 1}, 1, 4), ErrorCode::kInvalid, "the ranks must ascend");
  EXPECT_ERROR(place_in_group({1, 4}, 1, 4), ErrorCode::kInvalid, "not all of them exist");
  EXPECT_ERROR(place_in_group({0, 2}, 1, 4), ErrorCode::kInvalid, "it is not one of them");
  EXPECT_ERROR(place_in_group({}, 0, 4), ErrorCode::kInvalid, "it is not one of them");
}

}  // namespace
}  // namespace yoke::comm
