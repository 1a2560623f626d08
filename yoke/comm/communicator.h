// Collectives over a group of ranks: the one interface, whatever carries the data (local: threads; direct: shared
// memory and TCP; mpi; nccl).
//
//   std::unique_ptr<Communicator> comm = make_direct(…);
//   all_reduce(*comm, values, DType::kF32, ReduceOp::kSum, stream);          // in place
//   comm->wait(comm->record(stream), Deadline::after(5_s));                   // a step's end, or an Error naming the
//   peer
//
// Operations are enqueued on a stream and happen in that order; on a CPU stream they are done when enqueue() returns.
// All ranks enqueue the same operations in the same order: each carries (epoch, sequence, kind, size), and a peer that
// is at another one, or gone, is told by an Error that names it, not waited for.
//
// After a reduction all ranks hold the same bits. Beyond that, by backend (tested by communicator_cases.h):
//   local, direct  added in the order of ranks; f16 and bf16 in f32, rounded once; a NaN makes max and min NaN
//   mpi            f32 and integers in an order of MPI's, with its own rule for NaNs; f16 and bf16 as above
//   nccl           in an order of NCCL's, f16 and bf16 in their own precision, with its own rule for NaNs
//
// One thread at a time uses a communicator; only abort() may come from any thread. After an Error a communicator is
// good only for rebuild() or its end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/spec/membership.h"
#include "yoke/spec/step_account.h"
#include "yoke/tensor/dtype.h"
#include "yoke/tensor/stream.h"

namespace yoke::comm {

enum class ReduceOp { kSum, kMax, kMin, kAvg };
constexpr auto enum_names(ReduceOp) {
  return std::array{std::pair{"sum", ReduceOp::kSum}, std::pair{"max", ReduceOp::kMax},
                    std::pair{"min", ReduceOp::kMin}, std::pair{"avg", ReduceOp::kAvg}};
}
std::string_view to_string(ReduceOp op);

// The kinds, with the size of `send` and `receive` in elements; n is the number of ranks. `receive` may be `send` (in
// place) for kinds of equal sizes; for all-gather, gather (root) the rank's own part of `receive`, for reduce-scatter,
// scatter (root) the rank's own part of `send`, as in NCCL. All-to-all and send/receive are never in place.
enum class CollectiveKind {
  kAllReduce,      // count → count
  kAllGather,      // count → n·count
  kReduceScatter,  // n·count → count
  kBroadcast,      // count (root) → count
  kReduce,         // count → count (root)
  kGather,         // count → n·count (root)
  kScatter,        // n·count (root) → count
  kAllToAll,       // n·count → n·count: part r goes to rank r
  kSend,           // count to `root`, who receives
  kReceive,        // count from `root`, who sends
  kSendReceive,    // count to `root`, and count from `source`, at once
  kBarrier,        // nothing
};
constexpr auto enum_names(CollectiveKind) {
  using K = CollectiveKind;
  return std::array{std::pair{"all-reduce", K::kAllReduce},
                    std::pair{"all-gather", K::kAllGather},
                    std::pair{"reduce-scatter", K::kReduceScatter},
                    std::pair{"broadcast", K::kBroadcast},
                    std::pair{"reduce", K::kReduce},
                    std::pair{"gather", K::kGather},
                    std::pair{"scatter", K::kScatter},
                    std::pair{"all-to-all", K::kAllToAll},
                    std::pair{"send", K::kSend},
                    std::pair{"receive", K::kReceive},
                    std::pair{"send-receive", K::kSendReceive},
                    std::pair{"barrier", K::kBarrier}};
}
std::string_view to_string(CollectiveKind kind);

struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // elements, as the table above says; 0 is allowed
  tensor::DType type = tensor::DType::kF32;
  ReduceOp op = ReduceOp::kSum;  // avg of integers rounds toward zero
  int root = 0;                  // or the peer
  int source = 0;                // of send-receive
};

// What happened to a path while the group goes on, or what the group ended with.
struct PathEvent {
  enum class Kind { kRailLost, kRailBack, kPeerLost };
  Kind kind = Kind::kRailLost;
  int peer = 0;
  std::string rail;  // of kRailLost and kRailBack
  std::string why;   // "no sign of life for 1.2 s", "connection reset"
};

struct CommunicatorOptions {
  // Of each operation (direct: without a byte that moves); a peer known to be gone is reported much sooner.
  Seconds operation_timeout{30};
  Seconds silence_limit{1.2};                          // without a heartbeat a path counts as cut
  std::function<void(const PathEvent&)> on_path = {};  // from a thread of the communicator's
  // Called now and then while a group is being made, by who makes it; what it throws ends that.
  std::function<void()> while_making = {};
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual void enqueue(const Collective& operation, tensor::Stream stream) = 0;
  virtual tensor::Event record(tensor::Stream stream) = 0;
  // Throws what went wrong in any operation before the event; at the deadline kTimeout, naming who is waited for.
  virtual void wait(tensor::Event event, Deadline deadline) = 0;

  // From now on, instead of CommunicatorOptions::operation_timeout; for groups that split() makes later, too.
  virtual void limit_operations(Seconds limit) = 0;

  // Every operation under way or still to come throws this. From any thread.
  virtual void abort(const Error& reason) = 0;
  // Survivors and newcomers call it with the same list; this object's rank stays. What was enqueued before is
  // forgotten.
  virtual void rebuild(const spec::Membership& membership, Deadline deadline) = 0;
  // A group of some of the ranks, given in ascending order; all ranks of the group call it, and only they.
  virtual std::unique_ptr<Communicator> split(const std::vector<int>& ranks) = 0;

  // What carries the data, for people: "direct: tcp over A (192.168.100.1) and B (192.168.101.1)".
  virtual std::string describe() const = 0;

  // What went over each rail to each peer so far, where the backend has rails. By the thread that owns it.
  virtual std::vector<spec::RailUse> rail_uses() const { return {}; }
};

// Plain calls for the plain cases; `values` is read and overwritten.
inline void all_reduce(Communicator& comm, void* values, std::size_t count, tensor::DType type,
                       ReduceOp op = ReduceOp::kSum, tensor::Stream stream = tensor::Stream::cpu()) {
  comm.enqueue(
      {.kind = CollectiveKind::kAllReduce, .send = values, .receive = values, .count = count, .type = type, .op = op},
      stream);
}
inline void all_gather(Communicator& comm, const void* send, void* receive, std::size_t count, tensor::DType type,
                       tensor::Stream stream = tensor::Stream::cpu()) {
  comm.enqueue({.kind = CollectiveKind::kAllGather, .send = send, .receive = receive, .count = count, .type = type},
               stream);
}
inline void broadcast(Communicator& comm, void* values, std::size_t count, tensor::DType type, int root,
                      tensor::Stream stream = tensor::Stream::cpu()) {
  comm.enqueue({.kind = CollectiveKind::kBroadcast,
                .send = values,
                .receive = values,
                .count = count,
                .type = type,
                .root = root},
               stream);
}
inline void barrier(Communicator& comm, tensor::Stream stream = tensor::Stream::cpu()) { comm.enqueue({}, stream); }

// Sizes of the two buffers in elements, for `rank` of `ranks`: 0 where the rank has no part in it.
struct CollectiveCounts {
  std::size_t send = 0;
  std::size_t receive = 0;
};
CollectiveCounts counts_of(const Collective& operation, int rank, int ranks);

}  // namespace yoke::comm
