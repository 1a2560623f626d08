#include "yoke/comm/nccl/operations.h"

namespace yoke::comm::nccl {
namespace {

NcclType type_of(tensor::DType type) {
  switch (type) {
    case tensor::DType::kF32:
      return NcclType::kF32;
    case tensor::DType::kBf16:
      return NcclType::kBf16;
    case tensor::DType::kF16:
      return NcclType::kF16;
    case tensor::DType::kI8:
      return NcclType::kI8;
    case tensor::DType::kI32:
      return NcclType::kI32;
    default:  // check_operation() lets no other type pass
      return NcclType::kF32;
  }
}

// The average of one rank is what it has. NCCL 2.28.3 has a kernel of its own for that, which leaves out the last
// element of misaligned buffers.
NcclOp op_of(ReduceOp op, int ranks) {
  if (ranks == 1) return NcclOp::kSum;
  switch (op) {
    case ReduceOp::kSum:
      return NcclOp::kSum;
    case ReduceOp::kMax:
      return NcclOp::kMax;
    case ReduceOp::kMin:
      return NcclOp::kMin;
    case ReduceOp::kAvg:
      return NcclOp::kAvg;
  }
  return NcclOp::kSum;
}

// Sends and receives that happen at once. The first error is kept, and the group ended whatever comes, because NCCL
// counts starts and ends per thread.
class PointToPoint {
 public:
  PointToPoint(const NcclPlace& at, const Collective& operation)
      : at_(at), count_(operation.count), type_(type_of(operation.type)) {
    keep(at_.nccl.group_start());
  }

  void send(const void* data, int peer) { keep(at_.nccl.send(data, count_, type_, peer, at_.comm, at_.stream.cuda)); }
  void receive(void* data, int peer) { keep(at_.nccl.receive(data, count_, type_, peer, at_.comm, at_.stream.cuda)); }
  NcclResult end() {
    keep(at_.nccl.group_end());
    return result_;
  }

 private:
  void keep(NcclResult result) {
    if (result_ == NcclResult::kSuccess || result_ == NcclResult::kInProgress) result_ = result;
  }
  const NcclPlace& at_;
  std::size_t count_;
  NcclType type_;
  NcclResult result_ = NcclResult::kSuccess;
};

const char* part(const void* all, std::size_t bytes, int rank) {
  return static_cast<const char*>(all) + bytes * static_cast<std::size_t>(rank);
}
char* part(void* all, std::size_t bytes, int rank) {
  return static_cast<char*>(all) + bytes * static_cast<std::size_t>(rank);
}

// What a rank keeps for itself is copied by the driver, not sent through NCCL: it may be in place.
void copy_own(const NcclPlace& at, void* to, const void* from, std::size_t bytes) {
  if (to != from) cuda::cuda_copy(at.device, at.stream, to, from, bytes);
}

NcclResult gather(const NcclPlace& at, const Collective& op, std::size_t bytes) {
  const bool is_root = at.rank == op.root;
  if (is_root) copy_own(at, part(op.receive, bytes, at.rank), op.send, bytes);
  PointToPoint group(at, op);
  for (int peer = 0; is_root && peer < at.size; ++peer) {
    if (peer != at.rank) group.receive(part(op.receive, bytes, peer), peer);
  }
  if (!is_root) group.send(op.send, op.root);
  return group.end();
}

NcclResult scatter(const NcclPlace& at, const Collective& op, std::size_t bytes) {
  const bool is_root = at.rank == op.root;
  if (is_root) copy_own(at, op.receive, part(op.send, bytes, at.rank), bytes);
  PointToPoint group(at, op);
  for (int peer = 0; is_root && peer < at.size; ++peer) {
    if (peer != at.rank) group.send(part(op.send, bytes, peer), peer);
  }
  if (!is_root) group.receive(op.receive, op.root);
  return group.end();
}

NcclResult all_to_all(const NcclPlace& at, const Collective& op, std::size_t bytes) {
  copy_own(at, part(op.receive, bytes, at.rank), part(op.send, bytes, at.rank), bytes);
  PointToPoint group(at, op);
  for (int peer = 0; peer < at.size; ++peer) {
    if (peer == at.rank) continue;
    group.send(part(op.send, bytes, peer), peer);
    group.receive(part(op.receive, bytes, peer), peer);
  }
  return group.end();
}

NcclResult send_receive(const NcclPlace& at, const Collective& op, std::size_t bytes) {
  if (op.root == at.rank && op.source == at.rank) {
    copy_own(at, op.receive, op.send, bytes);
    return NcclResult::kSuccess;
  }
  PointToPoint group(at, op);
  group.send(op.send, op.root);
  group.receive(op.receive, op.source);
  return group.end();
}

}  // namespace

NcclResult issue(const NcclPlace& at, const Collective& op) {
  const std::size_t bytes = op.count * tensor::size_of(op.type);
  const NcclType type = type_of(op.type);
  switch (op.kind) {
    case CollectiveKind::kAllReduce:
      return at.nccl.all_reduce(op.send, op.receive, op.count, type, op_of(op.op, at.size), at.comm, at.stream.cuda);
    case CollectiveKind::kAllGather:
      return at.nccl.all_gather(op.send, op.receive, op.count, type, at.comm, at.stream.cuda);
    case CollectiveKind::kReduceScatter:
      return at.nccl.reduce_scatter(op.send, op.receive, op.count, type, op_of(op.op, at.size), at.comm,
                                    at.stream.cuda);
    case CollectiveKind::kBroadcast:
      return at.nccl.broadcast(at.rank == op.root ? op.send : op.receive, op.receive, op.count, type, op.root, at.comm,
                               at.stream.cuda);
    case CollectiveKind::kReduce:
      return at.nccl.reduce(op.send, op.receive, op.count, type, op_of(op.op, at.size), op.root, at.comm,
                            at.stream.cuda);
    case CollectiveKind::kGather:
      return gather(at, op, bytes);
    case CollectiveKind::kScatter:
      return scatter(at, op, bytes);
    case CollectiveKind::kAllToAll:
      return all_to_all(at, op, bytes);
    case CollectiveKind::kSend:
      return at.nccl.send(op.send, op.count, type, op.root, at.comm, at.stream.cuda);
    case CollectiveKind::kReceive:
      return at.nccl.receive(op.receive, op.count, type, op.root, at.comm, at.stream.cuda);
    case CollectiveKind::kSendReceive:
      return send_receive(at, op, bytes);
    case CollectiveKind::kBarrier:
      return at.nccl.all_reduce(at.word, at.word, 1, NcclType::kI32, NcclOp::kMax, at.comm, at.stream.cuda);
  }
  return NcclResult::kInvalidArgument;
}

}  // namespace yoke::comm::nccl
