#include "yoke/comm/direct/acceptor.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "yoke/comm/direct/direct.h"

namespace yoke::comm {
namespace direct {
namespace {

// A rank's greeting takes a few round trips. So many may be under way; beyond, the one that waits longest is dropped.
constexpr Seconds kHandshakeLimit{3};
constexpr std::size_t kMaxHandshakes = 256;

}  // namespace

direct::Inbox::Inbox(const spec::Membership& membership, int rank)
    : group_(direct::group_name(membership.token)),
      token_(membership.token),
      epoch_(membership.epoch),
      rank_(rank),
      size_(membership.size()),
      rails_(membership.members[static_cast<std::size_t>(rank)].endpoints.size()) {}

direct::HandshakeReply direct::Inbox::evaluate(const direct::Hello& hello) const {
  if (hello.epoch < static_cast<std::uint32_t>(epoch_)) return direct::HandshakeReply::kStale;
  if (hello.epoch > static_cast<std::uint32_t>(epoch_)) return direct::HandshakeReply::kNotYet;
  const bool known = hello.from < static_cast<std::uint32_t>(size_) && hello.to == static_cast<std::uint32_t>(rank_) &&
                     hello.from > hello.to && hello.rail < std::max<std::size_t>(rails_, 1);
  const std::lock_guard lock(mutex_);
  return known && !closed_ ? direct::HandshakeReply::kYes : direct::HandshakeReply::kRefused;
}

void direct::Inbox::put(direct::NewConnection connection) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  connections_.push_back(std::move(connection));
  changed_.notify_all();
}

std::vector<direct::NewConnection> direct::Inbox::take(Seconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, to_chrono(patience), [&] { return !connections_.empty() || nudged_; });
  nudged_ = false;
  return std::exchange(connections_, {});
}

void direct::Inbox::nudge() {
  const std::lock_guard lock(mutex_);
  nudged_ = true;
  changed_.notify_all();
}

void direct::Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  connections_.clear();
}

Acceptor::Acceptor(std::vector<Socket> listeners) {
  for (Socket& listener : listeners) doors_.push_back({"", std::move(listener)});
  thread_ = std::thread([this] { run(); });
}

direct::Acceptor::~Acceptor() {
  stopping_ = true;
  wakeup_.ring();
  thread_.join();
}

// A group keeps its Unix socket from epoch to epoch.
void Acceptor::open(std::shared_ptr<Inbox> inbox, const Endpoint& first_endpoint) {
  const std::lock_guard lock(mutex_);
  const std::string& token = inbox->token();
  if (!memory_tokens_.contains(token)) {
    if (closing_.erase(token) == 0) new_doors_.push_back({token, direct::listen_memory(token, first_endpoint)});
    memory_tokens_.insert(token);
  }
  inboxes_.push_back(std::move(inbox));
  wakeup_.ring();
}

void Acceptor::update_doors() {
  const std::lock_guard lock(mutex_);
  for (Door& door : new_doors_) doors_.push_back(std::move(door));
  new_doors_.clear();
  std::erase_if(doors_, [&](const Door& door) { return !door.token.empty() && closing_.contains(door.token); });
  closing_.clear();
}

void direct::Acceptor::close(const std::shared_ptr<direct::Inbox>& inbox) {
  const std::lock_guard lock(mutex_);
  std::erase(inboxes_, inbox);
  const auto of_group = [&](const std::shared_ptr<Inbox>& other) { return other->token() == inbox->token(); };
  if (std::ranges::any_of(inboxes_, of_group) || memory_tokens_.erase(inbox->token()) == 0) return;
  closing_.insert(inbox->token());
  wakeup_.ring();
}

// The latest epoch of the group: the one that comes with an older one is to hear of it.
std::shared_ptr<direct::Inbox> direct::Acceptor::find(const direct::Hello& hello) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<direct::Inbox> found;
  for (const std::shared_ptr<direct::Inbox>& inbox : inboxes_) {
    if (inbox->group() == hello.group && (!found || inbox->epoch() > found->epoch())) found = inbox;
  }
  return found;
}

direct::HandshakePeer direct::Acceptor::look_up(const direct::Hello& hello) const {
  const std::shared_ptr<direct::Inbox> inbox = find(hello);
  if (!inbox) return {};
  return {direct::HandshakeReply::kYes, inbox->token(), inbox->epoch()};
}

void direct::Acceptor::accept_from(Socket& listener) {
  for (;;) {
    try {
      Socket socket = listener.accept(Deadline::after({0}));
      if (handshakes_.size() >= kMaxHandshakes) handshakes_.pop_front();
      handshakes_.emplace_back(std::move(socket), Deadline::after(kHandshakeLimit));
    } catch (const Error& error) {
      // Out of descriptors or memory: those in the queue have to wait, and we must not turn in circles.
      if (error.code() != ErrorCode::kTimeout) real_clock().sleep({0.01});
      return;
    }
  }
}

void direct::Acceptor::advance_handshakes() {
  for (auto handshake = handshakes_.begin(); handshake != handshakes_.end();) {
    const auto state = handshake->advance([this](const direct::Hello& hello) { return look_up(hello); },
                                          [this](const direct::Hello& hello) {
                                            const std::shared_ptr<direct::Inbox> inbox = find(hello);
                                            return inbox ? inbox->evaluate(hello) : direct::HandshakeReply::kNotYet;
                                          });
    if (state == direct::Handshake::State::kDone) {
      if (const std::shared_ptr<direct::Inbox> inbox = find(handshake->hello())) {
        const direct::Hello hello = handshake->hello();
        inbox->put({hello, handshake->take_socket()});
      }
    }
    const bool going = state == direct::Handshake::State::kGoing && !handshake->expired();
    handshake = going ? std::next(handshake) : handshakes_.erase(handshake);
  }
}

void direct::Acceptor::run() {
  std::vector<pollfd> waits;
  while (!stopping_) {
    update_doors();
    waits.clear();
    waits.push_back({wakeup_.fd(), POLLIN, 0});
    for (const Door& door : doors_) waits.push_back({door.listener.fd(), POLLIN, 0});
    for (const direct::Handshake& handshake : handshakes_) waits.push_back({handshake.socket().fd(), POLLIN, 0});
    poll(waits.data(), waits.size(), handshakes_.empty() ? -1 : 100);
    if (waits[0].revents != 0) wakeup_.clear();
    for (std::size_t i = 0; i < doors_.size(); ++i) {
      if (waits[1 + i].revents != 0) accept_from(doors_[i].listener);
    }
    advance_handshakes();
  }
}

}  // namespace direct

DirectListener::DirectListener(std::vector<spec::RailEndpoint> endpoints, std::unique_ptr<direct::Acceptor> acceptor)
    : endpoints_(std::move(endpoints)), acceptor_(std::move(acceptor)) {}

std::shared_ptr<DirectListener> DirectListener::open(const Rails& rails) {
  std::vector<Socket> sockets;
  std::vector<spec::RailEndpoint> endpoints;
  const Rails wanted = rails.empty() ? Rails{{"local", "127.0.0.1"}} : rails;
  for (const auto& [rail, address] : wanted) {
    sockets.push_back(listen_tcp({address, 0}));
    endpoints.push_back({rail, address, sockets.back().local().port});
  }
  return std::make_shared<DirectListener>(std::move(endpoints), std::make_unique<direct::Acceptor>(std::move(sockets)));
}

DirectListener::~DirectListener() = default;

}  // namespace yoke::comm
