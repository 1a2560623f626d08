#include "yoke/comm/direct/assembly.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

namespace yoke::comm::direct {
namespace {

// Packets of a cut rail are dropped silently, so an attempt has its own end; greetings are slow only where the peer is.
constexpr Seconds kConnectTime{0.5};
constexpr Seconds kGreetTime{5};
constexpr Seconds kPause{0.01};
// Enough for 100 Gb/s over 40 us, and small enough that two rails finish together.
constexpr int kSendBuffer = 512 << 10;

class Assembly {
 public:
  Assembly(std::shared_ptr<Inbox> inbox, Health& health, AssemblyOptions options, Deadline deadline)
      : inbox_(std::move(inbox)), health_(health), options_(std::move(options)), deadline_(deadline) {
    peers_.resize(static_cast<std::size_t>(health_.size()));
    first_rail_.resize(peers_.size());
    problems_.resize(peers_.size());
    for (int rank = 0; rank < health_.size(); ++rank) {
      const std::size_t rails = health_.is_local(rank) ? 0 : health_.member(rank).endpoints.size();
      peers_[static_cast<std::size_t>(rank)].data.resize(rails);
      peers_[static_cast<std::size_t>(rank)].heartbeat.resize(rails);
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
  void keep_connected(int peer, std::size_t rail, const std::vector<Purpose>& purposes);
  void drop_closed();
  Socket open_socket(int peer, std::size_t rail, Purpose purpose) const;
  bool attempt(int peer, std::size_t rail, Purpose purpose);
  void store(int peer, std::size_t rail, Purpose purpose, Socket socket);
  bool settled(int peer);
  bool all_settled();
  void throw_if_stale() const;
  [[noreturn]] void throw_missing();
  bool wanted(int peer, std::size_t rail, Purpose purpose);

  std::shared_ptr<Inbox> inbox_;
  Health& health_;
  AssemblyOptions options_;
  Deadline deadline_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> later_epoch_{0};
  std::mutex mutex_;  // of what follows
  std::vector<PeerConnections> peers_;
  std::vector<std::optional<Deadline>> first_rail_;  // set once one rail is whole: until when others are waited for
  std::vector<std::string> problems_;                // why the last attempt failed
  std::vector<std::thread> threads_;
};

void Assembly::start_connecting() {
  for (int peer = 0; peer < health_.rank(); ++peer) {
    if (health_.is_local(peer)) {
      threads_.emplace_back([this, peer] { keep_connected(peer, 0, {Purpose::kMemory}); });
      continue;
    }
    for (std::size_t rail = 0; rail < health_.member(peer).endpoints.size(); ++rail) {
      threads_.emplace_back([this, peer, rail] { keep_connected(peer, rail, {Purpose::kData, Purpose::kHeartbeat}); });
    }
  }
}

void Assembly::keep_connected(int peer, std::size_t rail, const std::vector<Purpose>& purposes) {
  while (!stopping_ && !deadline_.expired()) {
    for (const Purpose purpose : purposes) {
      try {
        if (wanted(peer, rail, purpose) && !attempt(peer, rail, purpose)) break;
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
    for (Socket& socket : there.heartbeat) drop(socket);
  }
}

bool Assembly::wanted(int peer, std::size_t rail, Purpose purpose) {
  const std::lock_guard lock(mutex_);
  const PeerConnections& there = peers_[static_cast<std::size_t>(peer)];
  return purpose == Purpose::kMemory ? !there.memory
         : purpose == Purpose::kData ? !there.data[rail]
                                     : !there.heartbeat[rail];
}

Socket Assembly::open_socket(int peer, std::size_t rail, Purpose purpose) const {
  const spec::RailEndpoint& to = health_.member(peer).endpoints[rail];
  if (purpose == Purpose::kMemory) return connect_memory(inbox_->token(), {to.address, to.port});
  const spec::RailEndpoint& own = health_.member(health_.rank()).endpoints[rail];
  const Deadline soon = Deadline::after({std::min(kConnectTime.value, deadline_.remaining().value)});
  Socket socket = connect_tcp({to.address, to.port}, {.source_address = own.address}, soon);
  return socket;
}

bool Assembly::attempt(int peer, std::size_t rail, Purpose purpose) {
  Socket socket = open_socket(peer, rail, purpose);
  Hello hello = make_hello();
  hello.epoch = static_cast<std::uint32_t>(health_.membership().epoch);
  hello.from = static_cast<std::uint32_t>(health_.rank());
  hello.to = static_cast<std::uint32_t>(peer);
  hello.rail = static_cast<std::uint32_t>(rail);
  hello.purpose = purpose;
  hello.group = inbox_->group();
  const Deadline soon = Deadline::after({std::min(kGreetTime.value, deadline_.remaining().value)});
  const Answer answer = greet(socket, hello, inbox_->token(), soon);
  switch (answer.welcome) {
    case HandshakeReply::kYes:
      store(peer, rail, purpose, std::move(socket));
      inbox_->nudge();
      return true;
    case HandshakeReply::kStale:
      later_epoch_ = answer.epoch;
      inbox_->nudge();
      return true;
    case HandshakeReply::kNotYet:
      return false;
    case HandshakeReply::kRefused:
      throw Error(ErrorCode::kPermission, fmt::format("{} refused the connection", socket.peer()));
  }
  return false;
}

void Assembly::store(int peer, std::size_t rail, Purpose purpose, Socket socket) {
  if (purpose != Purpose::kMemory) {
    socket.set_no_delay();
    if (purpose == Purpose::kData) {
      setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
      socket.set_reno();  // 8 MB over two rails take BBR 10% longer
    }
  }
  const std::lock_guard lock(mutex_);
  PeerConnections& there = peers_[static_cast<std::size_t>(peer)];
  const bool fits = purpose == Purpose::kMemory ? health_.is_local(peer) : rail < there.data.size();
  if (!fits) return;
  (purpose == Purpose::kMemory ? there.memory
   : purpose == Purpose::kData ? there.data[rail]
                               : there.heartbeat[rail]) = std::move(socket);
}

// Whether all is there, or as much as will be.
bool Assembly::settled(int peer) {
  const auto index = static_cast<std::size_t>(peer);
  PeerConnections& there = peers_[index];
  if (peer == health_.rank()) return true;
  if (health_.is_local(peer)) return static_cast<bool>(there.memory);
  std::size_t whole = 0;
  for (std::size_t rail = 0; rail < there.data.size(); ++rail)
    whole += there.data[rail] && there.heartbeat[rail] ? 1 : 0;
  if (whole == 0 || whole == there.data.size()) return whole > 0;
  if (!first_rail_[index]) first_rail_[index] = Deadline::after(options_.half_patience);
  return first_rail_[index]->expired() || deadline_.expired();
}

bool Assembly::all_settled() {
  const std::lock_guard lock(mutex_);
  bool all = true;
  for (int peer = 0; peer < health_.size(); ++peer) all = settled(peer) && all;
  return all;
}

void Assembly::throw_if_stale() const {
  if (later_epoch_ == 0) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("the group has gone on to epoch {}, this rank was to join epoch {}", later_epoch_.load(),
                          health_.membership().epoch),
              "rebuild with the latest membership");
}

void Assembly::throw_missing() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> missing;
  for (int peer = 0; peer < health_.size(); ++peer) {
    if (settled(peer)) continue;
    const std::string& problem = problems_[static_cast<std::size_t>(peer)];
    missing.push_back(problem.empty() ? health_.name(peer) : fmt::format("{} ({})", health_.name(peer), problem));
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("the group of epoch {} did not come together: waited too long for {}",
                          health_.membership().epoch, fmt::join(missing, ", ")),
              "do these ranks run, and does a firewall stop the ports between the nodes?");
}

std::vector<PeerConnections> Assembly::run() {
  start_connecting();
  while (!all_settled()) {
    if (deadline_.expired()) throw_missing();
    for (NewConnection& arrival : inbox_->take({std::min(0.02, deadline_.remaining().value)})) {
      store(static_cast<int>(arrival.hello.from), arrival.hello.rail, arrival.hello.purpose, std::move(arrival.socket));
    }
    throw_if_stale();
    health_.throw_if_failed();
    if (options_.while_waiting) options_.while_waiting();
    drop_closed();
  }
  stopping_ = true;
  inbox_->close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (PeerConnections& there : peers_) {
    for (std::size_t rail = 0; rail < there.data.size(); ++rail) {
      if (there.data[rail] && there.heartbeat[rail]) continue;
      there.data[rail].close();
      there.heartbeat[rail].close();
    }
  }
  return std::move(peers_);
}

}  // namespace

std::vector<PeerConnections> assemble(Acceptor& acceptor, const std::shared_ptr<Inbox>& inbox, Health& health,
                                      AssemblyOptions options, Deadline deadline) {
  const spec::RailEndpoint& own = health.member(health.rank()).endpoints.front();
  acceptor.open(inbox, {own.address, own.port});
  return Assembly(inbox, health, std::move(options), deadline).run();
}

}  // namespace yoke::comm::direct
