#include "yoke/comm/mpi/mpi_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "yoke/comm/mpi/mpi_parts.h"
#include "yoke/comm/operation.h"
#include "yoke/comm/reduce.h"

namespace yoke::comm::mpi {
namespace {

constexpr int kTag = 1;

// i8 averages are computed in 32 bits, which MPI's i8 sum is not.
bool mpi_can_reduce(tensor::DType type, ReduceOp op) {
  return type == tensor::DType::kF32 || type == tensor::DType::kI32 ||
         (type == tensor::DType::kI8 && op != ReduceOp::kAvg);
}

// Above this each rank reduces one part and gathers the others': n times less arithmetic and
// n/2 times less data than gathering everything, for one more round trip.
constexpr std::size_t kGatherAllBytes = 32 << 10;

std::byte* part_of(void* values, std::size_t part, std::size_t bytes) {
  return static_cast<std::byte*>(values) + part * bytes;
}
const std::byte* part_of(const void* values, std::size_t part, std::size_t bytes) {
  return static_cast<const std::byte*>(values) + part * bytes;
}

std::vector<const void*> parts_of(const void* values, std::size_t parts, std::size_t bytes) {
  std::vector<const void*> pointers;
  for (std::size_t r = 0; r < parts; ++r) pointers.push_back(part_of(values, r, bytes));
  return pointers;
}

}  // namespace

MpiGroup::MpiGroup(std::shared_ptr<MpiSession> session)
    : session_(std::move(session)),
      comm_(session_->comm()),
      owns_comm_(false),
      rank_(session_->rank()),
      size_(session_->size()) {}

MpiGroup::MpiGroup(std::shared_ptr<MpiSession> session, MpiHandle comm)
    : session_(std::move(session)), comm_(comm), owns_comm_(true) {
  check(mpi().Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(mpi().Comm_size(comm_, &size_), "MPI_Comm_size");
}

MpiGroup::~MpiGroup() {
  if (owns_comm_ && !session_->failure()) mpi().Comm_free(&comm_);
}

std::byte* MpiGroup::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

MpiWhat MpiGroup::name_of(const Bound& bound) const {
  return [&operation = bound.named] { return signature(operation); };
}

void MpiGroup::finish(MpiHandle request, const Bound& bound) {
  session_->finish(request, name_of(bound), bound.deadline);
}

void MpiGroup::carry_out(const Collective& operation, Deadline deadline) {
  const Bound bound{operation, deadline};
  const std::size_t most = session_->count_max();
  const auto ranks = static_cast<std::size_t>(size_);
  if (!has_part_of_each_rank(operation.kind)) {
    // Offsets of parts are counts too, and those of equal parts may reach beyond the end by one element for each rank.
    return for_each_part(operation, most - ranks, [&](const Collective& part) { execute_all(part, bound); });
  }
  // MPI counts what each rank has, but both families multiply it by the ranks in an int.
  if (operation.count > most / ranks) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{} for each of {} ranks is more than MPI counts ({} elements in all)",
                            signature(operation), size_, most),
                "do it in several operations");
  }
  execute_all(operation, bound);
}

void MpiGroup::execute_all(const Collective& operation, const Bound& bound) {
  if (is_point_to_point(operation.kind)) return exchange(operation, bound);
  if (!reduces(operation.kind)) return start_and_finish(operation, bound);
  if (mpi_can_reduce(operation.type, operation.op)) return reduce_by_mpi(operation, bound);
  const std::size_t bytes = operation.count * tensor::size_of(operation.type);
  if (operation.kind == CollectiveKind::kAllReduce && size_ == 2) return all_reduce_of_two(operation, bound);
  const bool in_parts = operation.kind == CollectiveKind::kAllReduce && bytes > kGatherAllBytes;
  return in_parts ? all_reduce_in_parts(operation, bound) : reduce_here(operation, bound);
}

// Blocking, for Open MPI's non-blocking all-reduce takes up to 1.9 times as long; the watchdog stands in for the
// deadline.
void MpiGroup::reduce_by_mpi(const Collective& operation, const Bound& bound) {
  const MpiWatchdog::Guard guard(session_->watchdog(), name_of(bound), bound.deadline);
  const MpiLibrary& library = session_->library();
  const MpiHandle type = library.type_of(operation.type);
  const MpiHandle op = library.op_of(operation.op);
  const auto count = static_cast<int>(operation.count);
  const bool has_result = operation.kind != CollectiveKind::kReduce || rank_ == operation.root;
  if (operation.kind == CollectiveKind::kAllReduce) {
    const void* send = operation.send == operation.receive ? library.constant().in_place : operation.send;
    check(mpi().Allreduce(send, operation.receive, count, type, op, comm_), "MPI_Allreduce");
  } else {
    // In place takes a detour. For reduce-scatter MPI has no form where the result is one's own part of `send`; and
    // MPICH 4.0.2 reads from MPI_IN_PLACE as an address in MPI_Reduce, where the root is not rank 0.
    const std::size_t bytes = operation.count * tensor::size_of(operation.type);
    const auto own = operation.kind == CollectiveKind::kReduce ? 0 : static_cast<std::size_t>(rank_);
    const bool in_place = operation.receive == part_of(operation.send, own, bytes);
    void* result = in_place && has_result ? scratch(bytes) : operation.receive;
    if (operation.kind == CollectiveKind::kReduce) {
      check(mpi().Reduce(operation.send, has_result ? result : nullptr, count, type, op, operation.root, comm_),
            "MPI_Reduce");
    } else {
      check(mpi().Reduce_scatter_block(operation.send, result, count, type, op, comm_), "MPI_Reduce_scatter_block");
    }
    if (result != operation.receive) std::memcpy(operation.receive, result, bytes);
  }
  if (has_result && operation.op == ReduceOp::kAvg) {
    divide_by_ranks(operation.receive, operation.count, operation.type, size_);
  }
}

// Everybody's values, or everybody's part that is ours, are brought together and reduced by our own arithmetic.
void MpiGroup::reduce_here(const Collective& operation, const Bound& bound) {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t bytes = operation.count * tensor::size_of(operation.type);
  const bool has_result = operation.kind != CollectiveKind::kReduce || rank_ == operation.root;
  Collective gather = operation;
  gather.receive = has_result ? scratch(ranks * bytes) : nullptr;
  gather.kind = operation.kind == CollectiveKind::kAllReduce ? CollectiveKind::kAllGather
                : operation.kind == CollectiveKind::kReduce  ? CollectiveKind::kGather
                                                             : CollectiveKind::kAllToAll;
  start_and_finish(gather, bound);
  if (!has_result) return;
  reduce_into(operation.receive, parts_of(gather.receive, ranks, bytes), operation.count, operation.type, operation.op);
}

// Two ranks swap their values: nothing is copied beside.
void MpiGroup::all_reduce_of_two(const Collective& operation, const Bound& bound) {
  Collective swap = operation;
  swap.kind = CollectiveKind::kSendReceive;
  swap.root = swap.source = 1 - rank_;
  swap.receive = scratch(operation.count * tensor::size_of(operation.type));
  exchange(swap, bound);
  const void* inputs[] = {rank_ == 0 ? operation.send : swap.receive, rank_ == 0 ? swap.receive : operation.send};
  reduce_into(operation.receive, inputs, operation.count, operation.type, operation.op);
}

void MpiGroup::all_reduce_in_parts(const Collective& operation, const Bound& bound) {
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t element = tensor::size_of(operation.type);
  std::vector<int> counts, offsets;
  for (std::size_t r = 0; r < ranks; ++r) {
    offsets.push_back(static_cast<int>(operation.count * r / ranks));
    counts.push_back(static_cast<int>(operation.count * (r + 1) / ranks) - offsets.back());
  }
  const int own = counts[static_cast<std::size_t>(rank_)];
  const auto own_count = static_cast<std::size_t>(own);
  std::vector<int> own_counts(ranks, own), own_offsets;
  for (int r = 0; r < size_; ++r) own_offsets.push_back(r * own);
  std::byte* gathered = scratch(ranks * own_count * element);
  const MpiHandle type = session_->library().type_of(operation.type);

  MpiHandle request = nullptr;
  check(mpi().Ialltoallv(operation.send, counts.data(), offsets.data(), type, gathered, own_counts.data(),
                         own_offsets.data(), type, comm_, &request),
        "MPI_Ialltoallv");
  finish(request, bound);
  std::byte* result =
      part_of(operation.receive, static_cast<std::size_t>(offsets[static_cast<std::size_t>(rank_)]), element);
  reduce_into(result, parts_of(gathered, ranks, own_count * element), own_count, operation.type, operation.op);
  request = nullptr;
  check(mpi().Iallgatherv(session_->library().constant().in_place, 0, type, operation.receive, counts.data(),
                          offsets.data(), type, comm_, &request),
        "MPI_Iallgatherv");
  finish(request, bound);
}

void MpiGroup::start_and_finish(const Collective& operation, const Bound& bound) {
  const MpiHandle type = session_->library().type_of(operation.type);
  void* const in_place = session_->library().constant().in_place;
  const auto count = static_cast<int>(operation.count);
  const std::size_t bytes = operation.count * tensor::size_of(operation.type);
  const auto own = static_cast<std::size_t>(rank_);
  const int root = operation.root;
  const bool is_root = rank_ == root;
  const void* send = operation.send;
  void* receive = operation.receive;
  MpiHandle request = nullptr;
  switch (operation.kind) {
    case CollectiveKind::kAllGather:
      if (send == part_of(receive, own, bytes)) send = in_place;
      check(mpi().Iallgather(send, count, type, receive, count, type, comm_, &request), "MPI_Iallgather");
      break;
    case CollectiveKind::kGather:
      if (is_root && send == part_of(receive, own, bytes)) send = in_place;
      check(mpi().Igather(send, count, type, receive, count, type, root, comm_, &request), "MPI_Igather");
      break;
    case CollectiveKind::kScatter:
      if (is_root && receive == part_of(send, own, bytes)) receive = in_place;
      check(mpi().Iscatter(send, count, type, receive, count, type, root, comm_, &request), "MPI_Iscatter");
      break;
    case CollectiveKind::kAllToAll:
      check(mpi().Ialltoall(send, count, type, receive, count, type, comm_, &request), "MPI_Ialltoall");
      break;
    case CollectiveKind::kBroadcast:
      if (is_root && send != receive) std::memcpy(receive, send, bytes);  // MPI's broadcast is always in place
      check(mpi().Ibcast(receive, count, type, root, comm_, &request), "MPI_Ibcast");
      break;
    default:
      check(mpi().Ibarrier(comm_, &request), "MPI_Ibarrier");
  }
  finish(request, bound);
}

void MpiGroup::exchange(const Collective& operation, const Bound& bound) {
  const MpiHandle type = session_->library().type_of(operation.type);
  const auto count = static_cast<int>(operation.count);
  const bool sends = operation.kind != CollectiveKind::kReceive;
  const bool receives = operation.kind != CollectiveKind::kSend;
  const int source = operation.kind == CollectiveKind::kSendReceive ? operation.source : operation.root;
  MpiHandle sending = nullptr, receiving = nullptr;
  if (receives) check(mpi().Irecv(operation.receive, count, type, source, kTag, comm_, &receiving), "MPI_Irecv");
  if (sends) check(mpi().Isend(operation.send, count, type, operation.root, kTag, comm_, &sending), "MPI_Isend");
  if (receives) finish(receiving, bound);
  if (sends) finish(sending, bound);
}

std::unique_ptr<MpiGroup> MpiGroup::split(const std::vector<int>& ranks, Deadline deadline) {
  const MpiWatchdog::Guard guard(
      session_->watchdog(), [] { return "MPI_Comm_create_group"; }, deadline);
  MpiHandle all = nullptr, some = nullptr, made = nullptr;
  check(mpi().Comm_group(comm_, &all), "MPI_Comm_group");
  check(mpi().Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  check(mpi().Comm_create_group(comm_, some, kTag, &made), "MPI_Comm_create_group");
  check(mpi().Group_free(&some), "MPI_Group_free");
  check(mpi().Group_free(&all), "MPI_Group_free");
  struct Made : MpiGroup {
    Made(std::shared_ptr<MpiSession> session, MpiHandle comm) : MpiGroup(std::move(session), comm) {}
  };
  return std::make_unique<Made>(session_, made);
}

}  // namespace yoke::comm::mpi
