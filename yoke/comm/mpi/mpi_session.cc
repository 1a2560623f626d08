#include "yoke/comm/mpi/mpi_session.h"

#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <numeric>

#include "yoke/comm/mpi/mpi_parts.h"
#include "yoke/comm/operation.h"

namespace yoke::comm::mpi {
namespace {

using namespace literals;

constexpr int kThreadMultiple = 3;  // MPI_THREAD_MULTIPLE in both families
constexpr Seconds kFinalizeTimeout = 30_s;
// mpirun drops lines that it has not forwarded yet when a rank aborts (seen with MPICH 4.0.2).
constexpr Seconds kForwardingTime = 300_ms;

// The watchdog's last word. Nobody above can report it: the thread that could is stuck inside MPI.
void end_job(const MpiLibrary& library, int rank, const Error& reason) {
  fmt::print(stderr, "yoke: rank {}: {}\n  hint: {}\n", rank, reason.message(), reason.hint());
  real_clock().sleep(kForwardingTime);
  library.call().Abort(library.constant().comm_world, reason.exit_status());
}

}  // namespace

std::shared_ptr<MpiSession> MpiSession::start(std::size_t count_max) {
  static std::atomic<bool> started = false;
  if (started.exchange(true)) {
    throw Error(ErrorCode::kConflict, "MPI was started in this process before",
                "keep the session: MPI cannot be started twice");
  }
  struct Session : MpiSession {
    explicit Session(std::size_t count_max) : MpiSession(count_max) {}
  };
  return std::make_shared<Session>(count_max);
}

MpiSession::MpiSession(std::size_t count_max) : count_max_(count_max) {
  const MpiFunctions& mpi = library_.call();
  int provided = 0;
  library_.check(mpi.Init_thread(nullptr, nullptr, kThreadMultiple, &provided), "MPI_Init_thread");
  if (provided < kThreadMultiple) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{} has no MPI_THREAD_MULTIPLE", library_.version()),
                "use a build of it that has");
  }
  library_.check(mpi.Comm_set_errhandler(library_.constant().comm_world, library_.constant().errors_return),
                 "MPI_Comm_set_errhandler");
  library_.check(mpi.Comm_dup(library_.constant().comm_world, &comm_), "MPI_Comm_dup");
  library_.check(mpi.Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  library_.check(mpi.Comm_size(comm_, &size_), "MPI_Comm_size");
  watchdog_ = std::make_unique<MpiWatchdog>([this](const Error& reason) { end_job(library_, rank_, reason); });
}

MpiSession::~MpiSession() {
  if (failure_) return;
  // MPI_Finalize waits for the other ranks, of which one may be stuck elsewhere.
  const MpiWatchdog::Guard guard(
      *watchdog_, [] { return "MPI_Finalize"; }, Deadline::after(kFinalizeTimeout));
  library_.call().Comm_free(&comm_);
  library_.call().Finalize();
}

void MpiSession::fail(const Error& reason) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = reason;
  }
  watchdog_->hurry(reason);
}

std::optional<Error> MpiSession::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

// Spins first, for most operations end within microseconds; then yields, for the peers may need this very core.
void MpiSession::finish(MpiHandle request, const MpiWhat& what, Deadline deadline) {
  constexpr int kSpins = 2000;
  for (int round = 1;; ++round) {
    int done = 0;
    library_.check(library_.call().Test(&request, &done, library_.constant().status_ignore), "MPI_Test");
    if (done != 0) return;
    if (round < kSpins) continue;
    sched_yield();
    if (const auto reason = failure()) throw *reason;
    if (deadline.expired()) {
      const Error late(ErrorCode::kTimeout, fmt::format("rank {}: {} did not end in time", rank_, what()),
                       "MPI does not report which rank is missing; look at what the others do");
      fail(late);
      throw late;
    }
  }
}

std::vector<std::string> MpiSession::exchange(const std::string& mine, Deadline deadline) {
  const MpiFunctions& mpi = library_.call();
  const MpiConstants& constant = library_.constant();
  const auto ranks = static_cast<std::size_t>(size_);
  MpiHandle request = nullptr;
  const auto length = static_cast<int>(mine.size());
  std::vector<int> lengths(ranks), offsets(ranks);
  library_.check(mpi.Iallgather(&length, 1, constant.int32, lengths.data(), 1, constant.int32, comm_, &request),
                 "MPI_Iallgather");
  finish(
      request, [] { return "an exchange of lengths"; }, deadline);

  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::string all(static_cast<std::size_t>(offsets.back() + lengths.back()), '\0');
  request = nullptr;
  library_.check(mpi.Iallgatherv(mine.data(), length, constant.int8, all.data(), lengths.data(), offsets.data(),
                                 constant.int8, comm_, &request),
                 "MPI_Iallgatherv");
  finish(
      request, [] { return "an exchange of texts"; }, deadline);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < ranks; ++r) {
    texts.push_back(all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
  }
  return texts;
}

void MpiSession::plain_all_reduce(const Collective& operation, Deadline deadline) {
  const MpiWatchdog::Guard guard(
      *watchdog_, [&operation] { return "plain " + signature(operation); }, deadline);
  for_each_part(operation, count_max_, [&](const Collective& part) {
    const void* from = part.send == part.receive ? library_.constant().in_place : part.send;
    library_.check(library_.call().Allreduce(from, part.receive, static_cast<int>(part.count),
                                             library_.type_of(part.type), library_.op_of(part.op), comm_),
                   "MPI_Allreduce");
  });
}

}  // namespace yoke::comm::mpi
