// What every backend asks of an operation before it carries it out: whether it makes sense, and how it is called in
// errors. Two ranks whose signatures differ are not at the same operation.
#pragma once
#include <string>

#include "yoke/comm/communicator.h"

namespace yoke::comm {

// Send, receive and send-receive concern two or three ranks; every other kind concerns all of the group.
constexpr bool is_point_to_point(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive || kind == CollectiveKind::kSendReceive;
}
constexpr bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kReduce;
}

// Throws kInvalid where a root or peer is no rank of the group, or a buffer is missing.
void check_operation(const Collective& operation, int rank, int ranks);

// "all-reduce of 4096 bf16 (sum)", "broadcast of 8 f32 from rank 1": the same on all ranks of one operation.
std::string signature(const Collective& operation);

// Throws kInvalid unless `ranks` ascends, lies within the group and contains `rank`; returns the place of `rank` in it.
int place_in_group(const std::vector<int>& ranks, int rank, int size);

}  // namespace yoke::comm
