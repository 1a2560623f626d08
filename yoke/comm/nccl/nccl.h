// Collectives by NCCL, between GPUs: the backend that every build has and that works where libcuda.so.1 and
// libnccl.so.2 are (library.h says how they are found).
//
//   const std::string id = exchange(membership);                    // made by rank 0: make_nccl_id()
//   auto comm = make_nccl({.rank = 1, .size = 2, .id = id, .device = 0, .exchange_id = exchange}, deadline);
//
// Where it differs from the contract of Communicator, because NCCL does:
// - Buffers are device memory, or host memory that CUDA pinned. On the CPU stream operations run on a stream of the
//   communicator's own and are waited for.
// - A peer that is gone is told by NCCL's own error when a network carries the data (TCP, RDMA), else only by the
//   deadline, and by address at most, not by rank. A peer at another operation is told by the deadline.
// - f16 and bf16 are added pairwise in their own precision, so that results are those of the contract only where the
//   sums are exact; avg of rails and f32 multiplies by 1/n before. The order of addition is NCCL's, the same on all
//   ranks. Integers wrap in their own type; their avg rounds toward zero.
// - The first operation between two ranks connects them, and enqueue() waits for the other until then, also on a CUDA
//   stream.
// - CUDA graphs that hold its operations go before the communicator does.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "yoke/comm/communicator.h"

namespace yoke::comm::nccl {

struct NcclOptions {
  int rank = 0;
  int size = 1;
  std::string id = {};  // the same on all ranks: make_nccl_id() of one of them
  int device = 0;       // as CUDA counts them
  // For rebuild(): rank 0 of the new list makes an id, and the function returns these same bytes on all of them. It
  // bounds its waits itself. Without it rebuild() is an Error. split() does without: it sends the id through NCCL.
  std::function<std::string(const spec::Membership&)> exchange_id = {};
  // Called while the communicator waits for others; what it throws ends it with that. So the one that knows sooner than
  // NCCL that a rank is gone can say so.
  std::function<void()> watch = {};
  CommunicatorOptions communicator = {};  // only operation_timeout is used
};

// 128 bytes that name a group that is to meet. They hold an address of this process, where the others report: it lives
// until the group has met.
std::string make_nccl_id();

// Returns when all ranks have come. Throws kUnavailable without driver or library, kTimeout at the deadline.
std::unique_ptr<Communicator> make_nccl(NcclOptions options, Deadline deadline);

}  // namespace yoke::comm::nccl
