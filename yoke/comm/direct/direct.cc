#include "yoke/comm/direct/direct.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "yoke/base/hash.h"
#include "yoke/comm/direct/group.h"
#include "yoke/comm/operation.h"

namespace yoke::comm {
namespace direct {
namespace {

// A peer may be dead without our knowing it yet: then nothing that is still on its way can be waited for.
constexpr Seconds kLeaveTime{0.2};
constexpr std::size_t kMaxRails = 32;  // bits of PeerHealth::lost

class DirectCommunicator : public Communicator {
 public:
  DirectCommunicator(std::shared_ptr<DirectListener> listener, const spec::Membership& membership, int rank,
                     CommunicatorOptions options, Deadline deadline)
      : listener_(std::move(listener)), rank_(rank), options_(std::move(options)) {
    build(membership, deadline);
  }

  int rank() const override { return rank_; }
  int size() const override { return membership_.size(); }

  void enqueue(const Collective& operation, tensor::Stream stream) override {
    require_cpu(stream.is_cpu());
    group().run(operation);
  }
  tensor::Event record(tensor::Stream stream) override {
    require_cpu(stream.is_cpu());
    return {};
  }
  // Operations are done, or have thrown, when enqueue() returns; what remains is a failure since.
  void wait(tensor::Event, Deadline) override { health()->throw_if_failed(); }

  void limit_operations(Seconds limit) override {
    options_.operation_timeout = limit;
    if (group_) group_->limit_operations(limit);
  }
  void abort(const Error& reason) override { health()->fail(reason); }

  void rebuild(const spec::Membership& membership, Deadline deadline) override {
    const std::shared_ptr<direct::Health> before = health();
    if (group_) group_->leave(Deadline::after(kLeaveTime));
    group_.reset();
    build(membership, deadline);
    report_rails_that_are_back(*before);
  }

  std::unique_ptr<Communicator> split(const std::vector<int>& ranks) override {
    const int place = place_in_group(ranks, rank_, size());
    spec::Membership part{.epoch = membership_.epoch, .token = {}, .members = {}};
    for (const int rank : ranks) part.members.push_back(membership_.members[static_cast<std::size_t>(rank)]);
    // The n-th group of the same ranks has a name of its own. All its members have made n - 1 of them before.
    const std::string members = fmt::format("{}", fmt::join(ranks, ","));
    const int number = ++splits_[members];
    part.token = sha256_hex(fmt::format("{}|split|{}|{}", membership_.token, members, number));
    return std::make_unique<DirectCommunicator>(listener_, part, place, options_,
                                                Deadline::after(options_.operation_timeout));
  }

  std::string describe() const override { return group_ ? group_->describe() : "direct: not connected"; }
  std::vector<spec::RailUse> rail_uses() const override {
    return group_ ? group_->rail_uses() : std::vector<spec::RailUse>{};
  }

 private:
  static void require_cpu(bool is_cpu) {
    if (is_cpu) return;
    throw Error(ErrorCode::kUnsupported, "the direct backend exchanges processor memory, not a GPU's",
                "use the nccl backend for CUDA streams");
  }

  void check_membership(const spec::Membership& membership) const {
    if (rank_ < 0 || rank_ >= membership.size()) {
      throw Error(ErrorCode::kInvalid, fmt::format("there is no rank {} among {}", rank_, membership.size()));
    }
    const std::size_t rails = membership.members[0].endpoints.size();
    for (const spec::Member& member : membership.members) {
      if (rails >= 1 && rails <= kMaxRails && member.endpoints.size() == rails) continue;
      throw Error(ErrorCode::kInvalid, fmt::format("{} listens on {} rails, {} on {}", member.node,
                                                   member.endpoints.size(), membership.members[0].node, rails));
    }
  }

  void report_rails_that_are_back(direct::Health& before) const {
    for (int peer = 0; options_.on_path && peer < std::min(before.size(), size()); ++peer) {
      const std::vector<spec::RailEndpoint>& rails = membership_.members[static_cast<std::size_t>(peer)].endpoints;
      for (std::size_t rail = 0; rail < rails.size(); ++rail) {
        if ((before.peer(peer).lost >> rail & 1U) == 0 || !group_->has_rail(peer, static_cast<int>(rail))) continue;
        options_.on_path({PathEvent::Kind::kRailBack, peer, rails[rail].rail, "connected again"});
      }
    }
  }

  direct::Group& group() {
    if (group_) return *group_;
    throw Error(ErrorCode::kUnavailable, "this communicator has no group: its last rebuild failed", "rebuild it");
  }

  std::shared_ptr<direct::Health> health() {
    const std::lock_guard lock(mutex_);
    return health_;
  }

  void build(const spec::Membership& membership, Deadline deadline) {
    check_membership(membership);
    membership_ = membership;
    splits_.clear();
    auto fresh = std::make_shared<direct::Health>(membership, rank_);
    {
      const std::lock_guard lock(mutex_);
      health_ = fresh;  // an abort() from now on ends the building too
    }
    group_ = std::make_unique<direct::Group>(listener_, fresh, options_, deadline);
  }

  std::shared_ptr<DirectListener> listener_;
  const int rank_;
  CommunicatorOptions options_;
  spec::Membership membership_;
  std::map<std::string, int> splits_;
  std::mutex mutex_;
  std::shared_ptr<direct::Health> health_;
  std::unique_ptr<direct::Group> group_;
};

}  // namespace
}  // namespace direct

std::unique_ptr<Communicator> make_direct(std::shared_ptr<DirectListener> listener, spec::Membership membership,
                                          int rank, CommunicatorOptions options, Deadline deadline) {
  return std::make_unique<direct::DirectCommunicator>(std::move(listener), membership, rank, std::move(options),
                                                      deadline);
}

}  // namespace yoke::comm
