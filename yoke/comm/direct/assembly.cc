#include "yoke/comm/direct/assembly.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

namespace yoke::direct {
namespace {

// Packets of a cut half are dropped silently, so an attempt has its own end; greetings are slow only where the peer is.
constexpr Seconds kConnectTime{0.5};
constexpr Seconds kGreetTime{5};
constexpr Seconds kPause{0.01};
// Enough for 100 Gb/s over 40 us, and small enough that two halves finish together.
constexpr int kSendBuffer = 512 << 10;
// On a cable nothing is lost and nobody else is to be let by. Some machines have BBR as their default, which measures
// the way and paces what it sends: 8 MB over two halves take it 10% longer. Reno is in every kernel and open to all.
constexpr std::string_view kCongestionControl = "reno";

class Assembly {
 public:
  Assembly(std::shared_ptr<Inbox> inbox, Vitals& vitals, AssemblyOptions options, Deadline deadline)
      : inbox_(std::move(inbox)), vitals_(vitals), options_(std::move(options)), deadline_(deadline) {
    peers_.resize(static_cast<std::size_t>(vitals_.size()));
    first_half_.resize(peers_.size());
    problems_.resize(peers_.size());
    for (int rank = 0; rank < vitals_.size(); ++rank) {
      const std::size_t halves = vitals_.is_local(rank) ? 0 : vitals_.member(rank).endpoints.size();
      peers_[static_cast<std::size_t>(rank)].data.resize(halves);
      peers_[static_cast<std::size_t>(rank)].heart.resize(halves);
    }
  }
  ~Assembly() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    inbox_->close();
  }

  std::vector<PeerConnections> run();

 private:
  void start_connecting();
  void keep_connected(int peer, std::size_t half, const std::vector<Purpose>& purposes);
  void drop_closed();
  Socket open_socket(int peer, std::size_t half, Purpose purpose) const;
  bool attempt(int peer, std::size_t half, Purpose purpose);
  void store(int peer, std::size_t half, Purpose purpose, Socket socket);
  bool settled(int peer);
  bool all_settled();
  void throw_if_stale() const;
  [[noreturn]] void throw_missing();
  bool wanted(int peer, std::size_t half, Purpose purpose);

  std::shared_ptr<Inbox> inbox_;
  Vitals& vitals_;
  AssemblyOptions options_;
  Deadline deadline_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> later_epoch_{0};
  std::mutex mutex_;  // of what follows
  std::vector<PeerConnections> peers_;
  std::vector<std::optional<Deadline>> first_half_;  // set once one half is whole: until when others are waited for
  std::vector<std::string> problems_;                // why the last attempt failed
  std::vector<std::thread> threads_;
};

void Assembly::start_connecting() {
  for (int peer = 0; peer < vitals_.rank(); ++peer) {
    if (vitals_.is_local(peer)) {
      threads_.emplace_back([this, peer] { keep_connected(peer, 0, {Purpose::kMemory}); });
      continue;
    }
    for (std::size_t half = 0; half < vitals_.member(peer).endpoints.size(); ++half) {
      threads_.emplace_back([this, peer, half] { keep_connected(peer, half, {Purpose::kData, Purpose::kHeart}); });
    }
  }
}

void Assembly::keep_connected(int peer, std::size_t half, const std::vector<Purpose>& purposes) {
  while (!stopping_ && !deadline_.expired()) {
    for (const Purpose purpose : purposes) {
      try {
        if (wanted(peer, half, purpose) && !attempt(peer, half, purpose)) break;
      } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        problems_[static_cast<std::size_t>(peer)] = error.message();
        break;
      }
    }
    real_clock().sleep(kPause);
  }
}

// A peer that closes a connection has given up this attempt: asked again, it tells whether the group has gone on.
void Assembly::drop_closed() {
  const std::lock_guard lock(mutex_);
  const auto drop = [](Socket& socket) {
    pollfd look{socket.fd(), POLLRDHUP, 0};
    if (socket && poll(&look, 1, 0) > 0) socket.close();
  };
  for (PeerConnections& there : peers_) {
    drop(there.memory);
    for (Socket& socket : there.data) drop(socket);
    for (Socket& socket : there.heart) drop(socket);
  }
}

bool Assembly::wanted(int peer, std::size_t half, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  const PeerConnections& there = peers_[static_cast<std::size_t>(peer)];
  return purpose == Purpose::kMemory ? !there.memory
         : purpose == Purpose::kData ? !there.data[half]
                                     : !there.heart[half];
}

Socket Assembly::open_socket(int peer, std::size_t half, Purpose purpose) const {
  const HalfEndpoint& to = vitals_.member(peer).endpoints[half];
  if (purpose == Purpose::kMemory) return connect_memory({to.address, to.port});
  const HalfEndpoint& own = vitals_.member(vitals_.rank()).endpoints[half];
  const Deadline soon = Deadline::after({std::min(kConnectTime.value, deadline_.remaining().value)});
  Socket socket = connect_tcp({to.address, to.port}, {.source_address = own.address}, soon);
  return socket;
}

bool Assembly::attempt(int peer, std::size_t half, Purpose purpose) {
  Socket socket = open_socket(peer, half, purpose);
  Hello hello = make_hello();
  hello.epoch = static_cast<std::uint32_t>(vitals_.membership().epoch);
  hello.from = static_cast<std::uint32_t>(vitals_.rank());
  hello.to = static_cast<std::uint32_t>(peer);
  hello.half = static_cast<std::uint32_t>(half);
  hello.purpose = purpose;
  hello.group = inbox_->group();
  const Deadline soon = Deadline::after({std::min(kGreetTime.value, deadline_.remaining().value)});
  const Answer answer = greet(socket, hello, inbox_->token(), soon);
  switch (answer.welcome) {
    case Welcome::kYes:
      store(peer, half, purpose, std::move(socket));
      inbox_->nudge();
      return true;
    case Welcome::kStale:
      later_epoch_ = answer.epoch;
      inbox_->nudge();
      return true;
    case Welcome::kNotYet:
      return false;
    case Welcome::kRefused:
      throw Error(ErrorCode::kPermission, fmt::format("{} refused the connection", socket.peer()));
  }
  return false;
}

void Assembly::store(int peer, std::size_t half, Purpose purpose, Socket socket) {
  if (purpose != Purpose::kMemory) {
    socket.set_no_delay();
    if (purpose == Purpose::kData) {
      setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
      setsockopt(socket.fd(), IPPROTO_TCP, TCP_CONGESTION, kCongestionControl.data(), kCongestionControl.size());
    }
  }
  const std::lock_guard lock(mutex_);
  PeerConnections& there = peers_[static_cast<std::size_t>(peer)];
  const bool fits = purpose == Purpose::kMemory ? vitals_.is_local(peer) : half < there.data.size();
  if (!fits) return;
  (purpose == Purpose::kMemory ? there.memory
   : purpose == Purpose::kData ? there.data[half]
                               : there.heart[half]) = std::move(socket);
}

// Whether all is there, or as much as will be.
bool Assembly::settled(int peer) {
  const auto index = static_cast<std::size_t>(peer);
  PeerConnections& there = peers_[index];
  if (peer == vitals_.rank()) return true;
  if (vitals_.is_local(peer)) return static_cast<bool>(there.memory);
  std::size_t whole = 0;
  for (std::size_t half = 0; half < there.data.size(); ++half) whole += there.data[half] && there.heart[half] ? 1 : 0;
  if (whole == 0 || whole == there.data.size()) return whole > 0;
  if (!first_half_[index]) first_half_[index] = Deadline::after(options_.half_patience);
  return first_half_[index]->expired() || deadline_.expired();
}

bool Assembly::all_settled() {
  const std::lock_guard lock(mutex_);
  bool all = true;
  for (int peer = 0; peer < vitals_.size(); ++peer) all = settled(peer) && all;
  return all;
}

void Assembly::throw_if_stale() const {
  if (later_epoch_ == 0) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("the group has gone on to epoch {}, this rank was to join epoch {}", later_epoch_.load(),
                          vitals_.membership().epoch),
              "rebuild with the latest membership");
}

void Assembly::throw_missing() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> missing;
  for (int peer = 0; peer < vitals_.size(); ++peer) {
    if (settled(peer)) continue;
    const std::string& problem = problems_[static_cast<std::size_t>(peer)];
    missing.push_back(problem.empty() ? vitals_.name(peer) : fmt::format("{} ({})", vitals_.name(peer), problem));
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("the group of epoch {} did not come together: waited too long for {}",
                          vitals_.membership().epoch, fmt::join(missing, ", ")),
              "do these ranks run, and does a firewall stop the ports between the nodes?");
}

std::vector<PeerConnections> Assembly::run() {
  start_connecting();
  while (!all_settled()) {
    if (deadline_.expired()) throw_missing();
    for (Arrival& arrival : inbox_->take({std::min(0.02, deadline_.remaining().value)})) {
      store(static_cast<int>(arrival.hello.from), arrival.hello.half, arrival.hello.purpose, std::move(arrival.socket));
    }
    throw_if_stale();
    vitals_.throw_if_failed();
    if (options_.while_waiting) options_.while_waiting();
    drop_closed();
  }
  stopping_ = true;
  inbox_->close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (PeerConnections& there : peers_) {
    for (std::size_t half = 0; half < there.data.size(); ++half) {
      if (there.data[half] && there.heart[half]) continue;
      there.data[half].close();
      there.heart[half].close();
    }
  }
  return std::move(peers_);
}

}  // namespace

std::vector<PeerConnections> assemble(Reception& reception, const std::shared_ptr<Inbox>& inbox, Vitals& vitals,
                                      AssemblyOptions options, Deadline deadline) {
  reception.open(inbox);
  return Assembly(inbox, vitals, std::move(options), deadline).run();
}

}  // namespace yoke::direct
