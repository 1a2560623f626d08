// What the threads of one communicator know together about the group: who is lost on which rail, how far each rank is,
// and the first failure, which ends every operation. The caller's thread runs the operations and reports what its
// sockets tell; the heartbeat thread evaluates; any thread may fail the group. A Bell wakes a thread that waits in
// poll(2).
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/spec/membership.h"

namespace yoke::comm::direct {

class Wakeup {
 public:
  Wakeup();
  explicit Wakeup(UniqueFd fd) : fd_(std::move(fd)) {}  // another rank's
  int fd() const { return fd_.get(); }
  void ring() const noexcept;
  void clear() const noexcept;  // forgets the rings so far

 private:
  UniqueFd fd_;
};

struct PeerHealth {
  std::atomic<std::uint32_t> lost{0};  // one bit for each rail, set by the heartbeat
  std::atomic<std::uint64_t> begun{0}, finished{0};
  std::atomic<bool> left{false};  // in good order: all it sent has arrived
};

struct PathLoss {
  int peer = 0;
  int rail = 0;
  std::string why;
};

class Health {
 public:
  Health(spec::Membership membership, int rank);

  const spec::Membership& membership() const { return membership_; }
  int rank() const { return rank_; }
  int size() const { return membership_.size(); }
  std::string name(int rank) const;  // "rank 1 on spark-2"
  bool is_local(int rank) const { return member(rank).node == member(rank_).node; }
  const spec::Member& member(int rank) const { return membership_.members[static_cast<std::size_t>(rank)]; }

  PeerHealth& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  std::atomic<std::uint64_t> begun{0}, finished{0};  // operations of this rank

  // The first failure stays, and is what every rank gets to know.
  void fail(const Error& error);
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  std::optional<Error> failure() const;
  void throw_if_failed() const {
    if (failed()) throw *failure();
  }

  // From the thread that owns the data sockets, for the heartbeat to evaluate.
  void report(PathLoss loss);
  std::vector<PathLoss> take_reports();

  Wakeup caller_wakeup, heartbeat_wakeup;

 private:
  spec::Membership membership_;
  int rank_;
  std::unique_ptr<PeerHealth[]> peers_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::optional<Error> failure_;
  std::vector<PathLoss> reports_;
};

}  // namespace yoke::comm::direct
