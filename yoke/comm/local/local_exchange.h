// Where the ranks of one group meet, during one epoch. All state is behind one mutex; every wait ends by its
// deadline, by break_up() or by the others' coming. Shared by the ranks' communicators; any thread may call.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "yoke/comm/communicator.h"

namespace yoke::comm::local {

class LocalExchange {
 public:
  explicit LocalExchange(int ranks) : arrivals_(static_cast<std::size_t>(ranks)), left_(arrivals_.size()) {}

  int size() const { return static_cast<int>(arrivals_.size()); }

  // A collective: returns when it is done for all ranks. `what` must be the same on all of them.
  void meet(int rank, const Collective& operation, const std::string& what, Deadline deadline);
  // Send, receive or both.
  void exchange(int rank, const Collective& operation, Deadline deadline);

  // Everything under way and still to come throws `reason`; the first reason stays.
  void break_up(const Error& reason);
  // The one that waits for `rank`, or comes to wait for it, throws `reason`; the others may go on among themselves.
  void leave(int rank, const Error& reason);

  // The group of `ranks` that each of them asks for the `occurrence`th time.
  std::shared_ptr<LocalExchange> child(const std::vector<int>& ranks, int occurrence);

 private:
  struct NewConnection {
    Collective operation;
    std::string what;
  };
  struct OfferedData {  // data offered by a sender who waits until it is taken
    const Collective* operation = nullptr;
    bool taken = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void break_up_locked(const Error& reason);
  void reject_unknown_peers_at(int rank);
  void carry_out();
  void take_parcel(Lock& lock, int rank, int source, const Collective& operation, Deadline deadline);
  void await_taker(Lock& lock, int rank, const OfferedData& parcel, Deadline deadline);
  // Returns whether `condition` came true, or false at the deadline; throws when the group breaks up or `peer` leaves.
  template <class Condition>
  bool wait(Lock& lock, int peer, Deadline deadline, Condition condition);
  void throw_if_lost(int peer) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> broken_;
  std::vector<std::optional<NewConnection>> arrivals_;  // by rank, of the operation under way
  std::vector<std::optional<Error>> left_;              // by rank: why it is no longer there
  int arrived_ = 0;
  std::int64_t done_ = 0;                                // operations carried out
  std::map<std::pair<int, int>, OfferedData*> parcels_;  // by sender and receiver
  std::map<std::pair<std::vector<int>, int>, std::weak_ptr<LocalExchange>> children_;
};

}  // namespace yoke::comm::local
