#include "yoke/comm/local/local_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "yoke/comm/operation.h"
#include "yoke/comm/reduce.h"

namespace yoke::comm::local {
namespace {

void copy_elements(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}
std::byte* at(void* values, std::size_t offset) { return static_cast<std::byte*>(values) + offset; }
const std::byte* at(const void* values, std::size_t offset) { return static_cast<const std::byte*>(values) + offset; }

// The operation of all ranks as one loop. In place needs no thought: no part is written before it was last read, but
// by reduce_into itself.
void carry_out_for_all(const std::vector<Collective>& ranks) {
  const Collective& first = ranks.front();
  const std::size_t part = first.count * tensor::size_of(first.type);
  const auto root = static_cast<std::size_t>(first.root);
  const auto reduce = [&](void* out, std::size_t offset) {
    std::vector<const void*> inputs;
    for (const Collective& rank : ranks) inputs.push_back(at(rank.send, offset));
    reduce_into(out, inputs, first.count, first.type, first.op);
  };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Collective& rank = ranks[r];
    switch (first.kind) {
      case CollectiveKind::kAllReduce:
        if (r == 0) reduce(rank.receive, 0);
        copy_elements(rank.receive, first.receive, part);
        break;
      case CollectiveKind::kReduceScatter:
        reduce(rank.receive, r * part);
        break;
      case CollectiveKind::kReduce:
        if (r == root) reduce(rank.receive, 0);
        break;
      case CollectiveKind::kAllGather:
        for (const Collective& to : ranks) copy_elements(at(to.receive, r * part), rank.send, part);
        break;
      case CollectiveKind::kBroadcast:
        copy_elements(rank.receive, ranks[root].send, part);
        break;
      case CollectiveKind::kGather:
        copy_elements(at(ranks[root].receive, r * part), rank.send, part);
        break;
      case CollectiveKind::kScatter:
        copy_elements(rank.receive, at(ranks[root].send, r * part), part);
        break;
      case CollectiveKind::kAllToAll:
        for (std::size_t to = 0; to < ranks.size(); ++to) {
          copy_elements(at(ranks[to].receive, r * part), at(rank.send, to * part), part);
        }
        break;
      case CollectiveKind::kSend:
      case CollectiveKind::kReceive:
      case CollectiveKind::kSendReceive:
      case CollectiveKind::kBarrier:
        break;
    }
  }
}

constexpr int kEverybody = -1;
constexpr const char* kLookThere = "look at what that rank is doing";

}  // namespace

template <class Condition>
bool LocalExchange::wait(Lock& lock, int peer, Deadline deadline, Condition condition) {
  // What was done before the group broke up is done: a rank may leave right after the last operation.
  while (!condition()) {
    throw_if_lost(peer);
    if (deadline.expired()) return false;
    changed_.wait_for(lock, to_chrono(std::min(deadline.remaining(), Seconds{3600})));
  }
  return true;
}

void LocalExchange::throw_if_lost(int peer) const {
  if (broken_) throw *broken_;
  for (int rank = 0; rank < size(); ++rank) {
    const std::optional<Error>& left = left_[static_cast<std::size_t>(rank)];
    if (left && (peer == kEverybody || peer == rank)) throw *left;
  }
}

void LocalExchange::meet(int rank, const Collective& operation, const std::string& what, Deadline deadline) {
  Lock lock(mutex_);
  throw_if_lost(kEverybody);
  arrivals_[static_cast<std::size_t>(rank)] = NewConnection{operation, what};
  reject_unknown_peers_at(rank);
  if (++arrived_ == size()) return carry_out();

  const std::int64_t mine = done_;
  if (wait(lock, kEverybody, deadline, [&] { return done_ > mine; })) return;
  std::vector<int> missing;
  for (int r = 0; r < size(); ++r) {
    if (!arrivals_[static_cast<std::size_t>(r)]) missing.push_back(r);
  }
  break_up_locked(Error(ErrorCode::kTimeout,
                        fmt::format("rank{} {} did not come to {} (operation {})", missing.size() > 1 ? "s" : "",
                                    fmt::join(missing, ", "), what, done_),
                        kLookThere));
  throw *broken_;
}

// Compares with the lowest rank that is there; the order of coming does not matter to the message.
void LocalExchange::reject_unknown_peers_at(int rank) {
  for (int other = 0; other < size(); ++other) {
    const auto& theirs = arrivals_[static_cast<std::size_t>(other)];
    const auto& mine = arrivals_[static_cast<std::size_t>(rank)];
    if (!theirs || theirs->what == mine->what) continue;
    const int low = std::min(rank, other);
    const int high = std::max(rank, other);
    break_up_locked(Error(ErrorCode::kConflict,
                          fmt::format("operation {}: rank {} is at {}, rank {} at {}", done_, low,
                                      arrivals_[static_cast<std::size_t>(low)]->what, high,
                                      arrivals_[static_cast<std::size_t>(high)]->what),
                          "all ranks must enqueue the same operations in the same order"));
    throw *broken_;
  }
}

void LocalExchange::carry_out() {
  std::vector<Collective> ranks;
  for (auto& arrival : arrivals_) {
    ranks.push_back(arrival->operation);
    arrival.reset();
  }
  if (ranks.front().count > 0) carry_out_for_all(ranks);
  arrived_ = 0;
  ++done_;
  changed_.notify_all();
}

void LocalExchange::exchange(int rank, const Collective& operation, Deadline deadline) {
  Lock lock(mutex_);
  if (broken_) throw *broken_;
  const bool sends = operation.kind != CollectiveKind::kReceive;
  const bool receives = operation.kind != CollectiveKind::kSend;
  const int source = operation.kind == CollectiveKind::kSendReceive ? operation.source : operation.root;
  OfferedData parcel{.operation = &operation};
  if (sends) {
    parcels_[{rank, operation.root}] = &parcel;
    changed_.notify_all();
  }
  try {
    if (receives) take_parcel(lock, rank, source, operation, deadline);
    if (sends) await_taker(lock, rank, parcel, deadline);
  } catch (const Error&) {
    if (sends && !parcel.taken) parcels_.erase({rank, operation.root});  // it lies on this stack
    throw;
  }
}

void LocalExchange::await_taker(Lock& lock, int rank, const OfferedData& parcel, Deadline deadline) {
  const int taker = parcel.operation->root;
  if (wait(lock, taker, deadline, [&] { return parcel.taken; })) return;
  break_up_locked(Error(
      ErrorCode::kTimeout,
      fmt::format("rank {} did not take the {} of rank {}", taker, signature(*parcel.operation), rank), kLookThere));
  throw *broken_;
}

void LocalExchange::take_parcel(Lock& lock, int rank, int source, const Collective& operation, Deadline deadline) {
  const std::pair<int, int> way{source, rank};
  if (!wait(lock, source, deadline, [&] { return parcels_.contains(way); })) {
    break_up_locked(Error(ErrorCode::kTimeout,
                          fmt::format("rank {} sent nothing for the {} of rank {}", source, signature(operation), rank),
                          kLookThere));
    throw *broken_;
  }
  OfferedData& parcel = *parcels_.at(way);
  if (parcel.operation->count != operation.count || parcel.operation->type != operation.type) {
    break_up_locked(Error(ErrorCode::kConflict,
                          fmt::format("rank {} is at {}, rank {} at {}", source, signature(*parcel.operation), rank,
                                      signature(operation)),
                          "both sides of an exchange must name the same count and type"));
    throw *broken_;
  }
  copy_elements(operation.receive, parcel.operation->send, operation.count * tensor::size_of(operation.type));
  parcel.taken = true;
  parcels_.erase(way);
  changed_.notify_all();
}

void LocalExchange::break_up(const Error& reason) {
  const Lock lock(mutex_);
  break_up_locked(reason);
}

void LocalExchange::leave(int rank, const Error& reason) {
  const Lock lock(mutex_);
  left_[static_cast<std::size_t>(rank)] = reason;
  changed_.notify_all();
}

void LocalExchange::break_up_locked(const Error& reason) {
  if (!broken_) broken_ = reason;
  changed_.notify_all();
}

std::shared_ptr<LocalExchange> LocalExchange::child(const std::vector<int>& ranks, int occurrence) {
  const Lock lock(mutex_);
  std::weak_ptr<LocalExchange>& known = children_[{ranks, occurrence}];
  std::shared_ptr<LocalExchange> meeting = known.lock();
  if (!meeting) known = meeting = std::make_shared<LocalExchange>(static_cast<int>(ranks.size()));
  return meeting;
}

}  // namespace yoke::comm::local
