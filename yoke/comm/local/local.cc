#include "yoke/comm/local/local.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "yoke/base/check.h"
#include "yoke/comm/local/local_exchange.h"
#include "yoke/comm/operation.h"

namespace yoke::comm::local {
namespace {

// Where survivors and newcomers of a group find each other: a meeting for each epoch.
class Epochs {
 public:
  std::shared_ptr<LocalExchange> meeting(int epoch, int ranks) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<LocalExchange>& known = meetings_[epoch];
    std::shared_ptr<LocalExchange> meeting = known.lock();
    if (!meeting) known = meeting = std::make_shared<LocalExchange>(ranks);
    return meeting;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::weak_ptr<LocalExchange>> meetings_;
};

Error gone(int rank, std::string_view why) {
  return Error(ErrorCode::kUnavailable, fmt::format("rank {} {}", rank, why), "rebuild the group");
}

struct Place {
  int rank = 0;
  int epoch = 0;                   // 0: a newcomer, who belongs to no epoch yet
  std::shared_ptr<Epochs> epochs;  // missing in a group made by split()
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(Place place, std::shared_ptr<LocalExchange> meeting, CommunicatorOptions options)
      : place_(std::move(place)), meeting_(std::move(meeting)), options_(std::move(options)) {}
  ~LocalCommunicator() override { meeting_->leave(place_.rank, gone(place_.rank, "is gone")); }

  int rank() const override { return place_.rank; }
  int size() const override { return meeting_->size(); }

  void enqueue(const Collective& operation, tensor::Stream stream) override {
    if (!stream.is_cpu()) {
      throw Error(ErrorCode::kUnsupported, "the local backend works on processor memory", "choose the nccl backend");
    }
    check_operation(operation, rank(), size());
    const Deadline deadline = Deadline::after(options_.operation_timeout);
    if (is_point_to_point(operation.kind)) return meeting_->exchange(rank(), operation, deadline);
    meeting_->meet(rank(), operation, signature(operation), deadline);
  }
  tensor::Event record(tensor::Stream) override { return {}; }
  void wait(tensor::Event, Deadline) override {}  // operations on a CPU stream ended, or threw, in enqueue()

  void limit_operations(Seconds limit) override { options_.operation_timeout = limit; }
  void abort(const Error& reason) override {
    const std::lock_guard lock(meeting_mutex_);
    meeting_->break_up(reason);
  }
  void rebuild(const spec::Membership& membership, Deadline deadline) override;
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override;

  std::string describe() const override {
    return size() == 1 ? "in this process" : fmt::format("local: {} threads of one process", size());
  }

 private:
  void move_to(std::shared_ptr<LocalExchange> meeting) {
    const std::lock_guard lock(meeting_mutex_);
    meeting_ = std::move(meeting);
  }

  Place place_;
  // Exchanged by rebuild() in the owner's thread; the mutex is for abort(), which comes from any.
  std::mutex meeting_mutex_;
  std::shared_ptr<LocalExchange> meeting_;
  CommunicatorOptions options_;
  std::map<std::vector<int>, int> splits_;  // how often each group was asked for in this epoch
};

void LocalCommunicator::rebuild(const spec::Membership& membership, Deadline deadline) {
  if (!place_.epochs) {
    throw Error(ErrorCode::kUnsupported, "a group made by split() cannot be rebuilt",
                "rebuild the group it came from, then split again");
  }
  if (membership.epoch <= place_.epoch || rank() >= membership.size()) {
    throw Error(ErrorCode::kInvalid, fmt::format("rank {} at epoch {} cannot join epoch {} of {} ranks", rank(),
                                                 place_.epoch, membership.epoch, membership.size()));
  }
  meeting_->leave(rank(), gone(rank(), fmt::format("left for epoch {}", membership.epoch)));
  place_.epoch = membership.epoch;
  splits_.clear();
  move_to(place_.epochs->meeting(membership.epoch, membership.size()));
  if (meeting_->size() != membership.size()) {
    throw Error(ErrorCode::kConflict, fmt::format("epoch {} has {} ranks for one member and {} ranks for another",
                                                  membership.epoch, meeting_->size(), membership.size()));
  }
  meeting_->meet(rank(), {}, fmt::format("the rebuild at epoch {}", membership.epoch), deadline);
}

std::unique_ptr<Communicator> LocalCommunicator::split(const std::vector<int>& ranks) {
  const int place = place_in_group(ranks, rank(), size());
  std::shared_ptr<LocalExchange> meeting = meeting_->child(ranks, splits_[ranks]++);
  meeting->meet(place, {}, "the split", Deadline::after(options_.operation_timeout));
  return std::make_unique<LocalCommunicator>(Place{.rank = place, .epoch = place_.epoch}, std::move(meeting), options_);
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local(int ranks, CommunicatorOptions options) {
  YOKE_CHECK_GT(ranks, 0);
  const auto epochs = std::make_shared<Epochs>();
  const std::shared_ptr<LocalExchange> meeting = epochs->meeting(1, ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<LocalCommunicator>(Place{rank, 1, epochs}, meeting, options));
  }
  return communicators;
}

}  // namespace yoke::comm::local
