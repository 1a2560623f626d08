#include "yoke/comm/nccl/nccl.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>
#include <optional>

#include "yoke/base/interrupt.h"
#include "yoke/comm/interface_choice.h"
#include "yoke/comm/nccl/operations.h"
#include "yoke/comm/nccl/session.h"
#include "yoke/comm/operation.h"

namespace yoke::comm::nccl {
namespace {

constexpr Seconds kCloseTime{5};        // for what was enqueued, when a communicator goes
constexpr std::size_t kMinEvents = 64;  // kept before one is used again

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(NcclOptions options)
      : nccl_(NcclLibrary::get()),
        options_(std::move(options)),
        device_(std::make_shared<cuda::CudaDevice>(options_.device)),
        session_(std::make_shared<NcclSession>(device_)) {}
  ~NcclCommunicator() override { session_->close(Deadline::after(kCloseTime)); }

  void connect(const std::string& id, Deadline deadline);

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  void limit_operations(Seconds limit) override { options_.communicator.operation_timeout = limit; }
  void enqueue(const Collective& operation, tensor::Stream stream) override;
  tensor::Event record(tensor::Stream stream) override;
  void wait(tensor::Event event, Deadline deadline) override;
  void abort(const Error& reason) override;
  void rebuild(const spec::Membership& membership, Deadline deadline) override;
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override;
  std::string describe() const override {
    return fmt::format("nccl {} on {} (device {}); {}", nccl_.version(), device_->name(), device_->index(),
                       describe_interfaces("NCCL", {"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA"}));
  }

 private:
  void throw_failure();
  // Runs the work; what it throws becomes the failure of the communicator, unless there was one before.
  template <class Work>
  auto guard(const Work& work);
  Error ended_by(const Error& error);  // the first failure, which may be another one
  void check(NcclResult result, const std::string& what) const;
  // Until NCCL has nothing under way and `done`; `what` is for people.
  void await(const std::function<bool()>& done, Deadline deadline, const std::string& what);
  std::string whereabouts() const { return fmt::format("on rank {} of {}", rank(), size()); }
  std::string exchange_through_parent(const std::vector<int>& ranks);

  const NcclLibrary& nccl_;
  NcclOptions options_;
  std::shared_ptr<const cuda::CudaDevice> device_;
  std::deque<cuda::CudaEvent> events_;  // the oldest first
  std::uint64_t operations_ = 0;        // enqueued since the last rebuild

  std::mutex mutex_;  // of what abort() touches: the pointer, not the session; and the failure
  std::shared_ptr<NcclSession> session_;
  std::optional<Error> failure_;
};

void NcclCommunicator::throw_failure() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw Error(*failure_);
}

template <class Work>
auto NcclCommunicator::guard(const Work& work) {
  throw_failure();
  try {
    return work();
  } catch (const Error& error) {
    throw ended_by(error);
  }
}

Error NcclCommunicator::ended_by(const Error& error) {
  abort(error);
  const std::lock_guard lock(mutex_);
  return *failure_;
}

void NcclCommunicator::check(NcclResult result, const std::string& what) const {
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) return;
  throw nccl_.error(result, fmt::format("{} {}", what, whereabouts()));
}

void NcclCommunicator::await(const std::function<bool()>& done, Deadline deadline, const std::string& what) {
  cuda::PollPause between;
  while (true) {
    // Asked first: an abort in between ends the work too, and must not look like success.
    const bool is_done = done();
    throw_failure();
    const NcclResult state = session_->state();
    check(state, what);
    if (is_done && state == NcclResult::kSuccess) return;
    if (options_.watch) options_.watch();
    throw_if_interrupted();
    if (deadline.expired()) {
      throw Error(
          ErrorCode::kTimeout,
          fmt::format("{} {} was not done in time: NCCL does not report which rank it waits for", what, whereabouts()),
          "see which rank has stopped or is at another operation; NCCL_DEBUG=INFO shows the connections");
    }
    between.pause();
  }
}

void NcclCommunicator::connect(const std::string& id, Deadline deadline) {
  guard([&] {
    if (id.size() != kNcclIdSize) {
      throw Error(ErrorCode::kInvalid, fmt::format("an NCCL id has {} bytes, not {}", kNcclIdSize, id.size()));
    }
    if (rank() < 0 || rank() >= size()) {
      throw Error(ErrorCode::kInvalid, fmt::format("there is no rank {} in a group of {}", rank(), size()));
    }
    operations_ = 0;
    check(session_->start(rank(), size(), id), "connecting");
    await([] { return true; }, deadline, "connecting");
  });
}

void NcclCommunicator::enqueue(const Collective& operation, tensor::Stream stream) {
  guard([&] {
    check_operation(operation, rank(), size());
    if (operation.count == 0 && operation.kind != CollectiveKind::kBarrier) return;
    const tensor::Stream on = stream.is_cpu() ? session_->stream().stream() : stream;
    const std::string what = fmt::format("operation {}, {},", operations_++, signature(operation));
    const Deadline deadline = Deadline::after(options_.communicator.operation_timeout);
    const NcclResult result = session_->call([&](NcclComm comm) {
      return issue({.nccl = nccl_.call(),
                    .device = *device_,
                    .comm = comm,
                    .rank = rank(),
                    .size = size(),
                    .word = session_->word(),
                    .stream = on},
                   operation);
    });
    check(result, what);
    await([] { return true; }, deadline, what);
    if (stream.is_cpu()) await([&] { return session_->stream().is_done(); }, deadline, what);
  });
}

// An event that is used again has passed before, so the one that still waits for it waits for more than it asked, not
// less.
tensor::Event NcclCommunicator::record(tensor::Stream stream) {
  if (stream.is_cpu()) return {};
  return guard([&] {
    if (events_.size() >= kMinEvents && events_.front().passed()) {
      events_.push_back(std::move(events_.front()));
      events_.pop_front();
    } else {
      events_.emplace_back(*device_);
    }
    events_.back().record(stream);
    return events_.back().event();
  });
}

void NcclCommunicator::wait(tensor::Event event, Deadline deadline) {
  guard([&] {
    if (event.cuda == nullptr) return;
    await([&] { return cuda::has_passed(*device_, event); }, deadline,
          fmt::format("the last of {} operations", operations_));
  });
}

void NcclCommunicator::abort(const Error& reason) {
  std::shared_ptr<NcclSession> session;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = reason;
    session = session_;
  }
  session->abort();
}

void NcclCommunicator::rebuild(const spec::Membership& membership, Deadline deadline) {
  if (!options_.exchange_id) {
    throw Error(ErrorCode::kUnsupported, "this NCCL communicator was made without a way to exchange a new id");
  }
  session_->abort();
  auto session = std::make_shared<NcclSession>(device_);
  {
    const std::lock_guard lock(mutex_);
    session_.swap(session);
    failure_.reset();
  }
  session.reset();  // the old one, after the lock: freeing waits for the device
  options_.size = membership.size();
  connect(guard([&] { return options_.exchange_id(membership); }), deadline);
}

std::unique_ptr<Communicator> NcclCommunicator::split(const std::vector<int>& ranks) {
  const int place = place_in_group(ranks, rank(), size());
  NcclOptions options = options_;
  options.id = exchange_through_parent(ranks);
  options.rank = place;
  options.size = static_cast<int>(ranks.size());
  return make_nccl(std::move(options), Deadline::after(options_.communicator.operation_timeout));
}

// The first of the group makes the id and sends it to the others: only the members of the group take part, while
// NCCL's own split needs all ranks of the parent.
std::string NcclCommunicator::exchange_through_parent(const std::vector<int>& ranks) {
  const bool is_first = ranks.front() == rank();
  std::string id = is_first ? make_nccl_id() : std::string(kNcclIdSize, '\0');
  const cuda::CudaMemory carrier(*device_, kNcclIdSize);
  const cuda::CudaStream& stream = session_->stream();
  stream.copy(carrier.data(), id.data(), id.size());
  const auto message = [&](CollectiveKind kind, int peer) {
    enqueue({.kind = kind,
             .send = carrier.data(),
             .receive = carrier.data(),
             .count = kNcclIdSize,
             .type = tensor::DType::kI8,
             .root = peer},
            tensor::Stream::cpu());
  };
  if (!is_first) {
    message(CollectiveKind::kReceive, ranks.front());
  } else {
    for (const int peer : ranks) {
      if (peer != rank()) message(CollectiveKind::kSend, peer);
    }
  }
  stream.copy(id.data(), carrier.data(), id.size());
  stream.wait(Deadline::after(options_.communicator.operation_timeout));
  return id;
}

}  // namespace

std::string make_nccl_id() {
  const NcclLibrary& nccl = NcclLibrary::get();
  NcclUniqueId id{};
  const NcclResult result = nccl.call().unique_id(&id);
  if (result != NcclResult::kSuccess) throw nccl.error(result, "making an id");
  return std::string(id.bytes, sizeof id.bytes);
}

std::unique_ptr<Communicator> make_nccl(NcclOptions options, Deadline deadline) {
  const std::string id = options.id;
  auto communicator = std::make_unique<NcclCommunicator>(std::move(options));
  communicator->connect(id, deadline);
  return communicator;
}

}  // namespace yoke::comm::nccl
