#include "yoke/comm/operation.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Operation, IsRefusedWhereARootOrPeerDoesNotExist) {
  int value = 0;
  for (const auto kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kGather,
                          CollectiveKind::kScatter, CollectiveKind::kSend, CollectiveKind::kReceive}) {
    for (const int root : {-1, 2}) {
      const Collective operation{.kind = kind, .send = &value, .receive = &value, .count = 1, .root = root};
      EXPECT_EQ(code_of([&] { check_operation(operation, 0, 2); }), ErrorCode::kInvalid) << to_string(kind) << root;
    }
  }
  const Collective ring{
      .kind = CollectiveKind::kSendReceive, .send = &value, .receive = &value, .count = 1, .source = 9};
  EXPECT_EQ(code_of([&] { check_operation(ring, 0, 2); }), ErrorCode::kInvalid);
}

TEST(Operation, IsRefusedWithoutABufferThatItNeeds) {
  int value = 0;
  const Collective no_send{.kind = CollectiveKind::kAllReduce, .receive = &value, .count = 1};
  const Collective no_receive{.kind = CollectiveKind::kAllReduce, .send = &value, .count = 1};
  EXPECT_EQ(code_of([&] { check_operation(no_send, 0, 2); }), ErrorCode::kInvalid);
  EXPECT_EQ(code_of([&] { check_operation(no_receive, 0, 2); }), ErrorCode::kInvalid);
  EXPECT_NO_THROW(check_operation({.kind = CollectiveKind::kAllReduce, .count = 0}, 0, 2));
  EXPECT_NO_THROW(check_operation({.kind = CollectiveKind::kReduce, .send = &value, .count = 1, .root = 1}, 0, 2));
}

TEST(Operation, SaysWhatItIs) {
  EXPECT_EQ(signature({}), "barrier");
  EXPECT_EQ(signature({.kind = CollectiveKind::kAllReduce, .count = 8, .type = DType::kBf16, .op = ReduceOp::kAvg}),
            "all-reduce of 8 bf16 (avg)");
  EXPECT_EQ(signature({.kind = CollectiveKind::kScatter, .count = 8, .root = 3}), "scatter of 8 f32 from rank 3");
  EXPECT_EQ(signature({.kind = CollectiveKind::kSendReceive, .count = 1, .root = 3, .source = 2}),
            "send-receive of 1 f32 to rank 3 and from rank 2");
}

TEST(Operation, AGroupAscendsAndContainsTheRank) {
  EXPECT_EQ(place_in_group({1, 3}, 3, 4), 1);
  EXPECT_EQ(code_of([] { place_in_group({3, 1}, 3, 4); }), ErrorCode::kInvalid);
  EXPECT_EQ(code_of([] { place_in_group({1, 1}, 1, 4); }), ErrorCode::kInvalid);
  EXPECT_EQ(code_of([] { place_in_group({1, 4}, 1, 4); }), ErrorCode::kInvalid);
  EXPECT_EQ(code_of([] { place_in_group({0, 2}, 1, 4); }), ErrorCode::kInvalid);
  EXPECT_EQ(code_of([] { place_in_group({}, 0, 4); }), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace yoke
