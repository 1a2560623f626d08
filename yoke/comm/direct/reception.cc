#include "yoke/comm/direct/reception.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "yoke/comm/direct/direct.h"

namespace yoke {
namespace direct {
namespace {

// A rank's greeting takes a few round trips. So many may be under way; beyond, the one that waits longest is dropped.
constexpr Seconds kGreetingTime{3};
constexpr std::size_t kGreetingsMost = 256;

}  // namespace

Inbox::Inbox(const Membership& membership, int rank)
    : group_(group_name(membership.token)),
      token_(membership.token),
      epoch_(membership.epoch),
      rank_(rank),
      size_(membership.size()),
      halves_(membership.members[static_cast<std::size_t>(rank)].endpoints.size()) {}

Welcome Inbox::judge(const Hello& hello) const {
  if (hello.epoch < static_cast<std::uint32_t>(epoch_)) return Welcome::kStale;
  if (hello.epoch > static_cast<std::uint32_t>(epoch_)) return Welcome::kNotYet;
  const bool known = hello.from < static_cast<std::uint32_t>(size_) && hello.to == static_cast<std::uint32_t>(rank_) &&
                     hello.from > hello.to && hello.half < std::max<std::size_t>(halves_, 1);
  const std::lock_guard lock(mutex_);
  return known && !closed_ ? Welcome::kYes : Welcome::kRefused;
}

void Inbox::put(Arrival arrival) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  arrivals_.push_back(std::move(arrival));
  changed_.notify_all();
}

std::vector<Arrival> Inbox::take(Seconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, to_chrono(patience), [&] { return !arrivals_.empty() || nudged_; });
  nudged_ = false;
  return std::exchange(arrivals_, {});
}

void Inbox::nudge() {
  const std::lock_guard lock(mutex_);
  nudged_ = true;
  changed_.notify_all();
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  arrivals_.clear();
}

Reception::Reception(std::vector<Socket> listeners) : listeners_(std::move(listeners)), thread_([this] { run(); }) {}

Reception::~Reception() {
  stopping_ = true;
  stop_bell_.ring();
  thread_.join();
}

void Reception::open(std::shared_ptr<Inbox> inbox) {
  const std::lock_guard lock(mutex_);
  inboxes_.push_back(std::move(inbox));
}

void Reception::close(const std::shared_ptr<Inbox>& inbox) {
  const std::lock_guard lock(mutex_);
  std::erase(inboxes_, inbox);
}

// The latest epoch of the group: whoever comes with an older one is to hear of it.
std::shared_ptr<Inbox> Reception::find(const Hello& hello) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Inbox> found;
  for (const std::shared_ptr<Inbox>& inbox : inboxes_) {
    if (inbox->group() == hello.group && (!found || inbox->epoch() > found->epoch())) found = inbox;
  }
  return found;
}

Guest Reception::look_up(const Hello& hello) const {
  const std::shared_ptr<Inbox> inbox = find(hello);
  if (!inbox) return {};
  return {Welcome::kYes, inbox->token(), inbox->epoch()};
}

void Reception::accept_from(Socket& listener) {
  for (;;) {
    try {
      Socket socket = listener.accept(Deadline::after({0}));
      if (greetings_.size() >= kGreetingsMost) greetings_.pop_front();
      greetings_.emplace_back(std::move(socket), Deadline::after(kGreetingTime));
    } catch (const Error& error) {
      // Out of descriptors or memory: those in the queue have to wait, and we must not turn in circles.
      if (error.code() != ErrorCode::kTimeout) real_clock().sleep({0.01});
      return;
    }
  }
}

void Reception::advance_greetings() {
  for (auto greeting = greetings_.begin(); greeting != greetings_.end();) {
    const auto state = greeting->advance([this](const Hello& hello) { return look_up(hello); },
                                         [this](const Hello& hello) {
                                           const std::shared_ptr<Inbox> inbox = find(hello);
                                           return inbox ? inbox->judge(hello) : Welcome::kNotYet;
                                         });
    if (state == Greeting::State::kDone) {
      if (const std::shared_ptr<Inbox> inbox = find(greeting->hello())) {
        const Hello hello = greeting->hello();
        inbox->put({hello, greeting->take_socket()});
      }
    }
    const bool going = state == Greeting::State::kGoing && !greeting->expired();
    greeting = going ? std::next(greeting) : greetings_.erase(greeting);
  }
}

void Reception::run() {
  std::vector<pollfd> waits;
  while (!stopping_) {
    waits.clear();
    waits.push_back({stop_bell_.fd(), POLLIN, 0});
    for (const Socket& listener : listeners_) waits.push_back({listener.fd(), POLLIN, 0});
    for (const Greeting& greeting : greetings_) waits.push_back({greeting.socket().fd(), POLLIN, 0});
    poll(waits.data(), waits.size(), greetings_.empty() ? -1 : 100);
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (waits[1 + i].revents != 0) accept_from(listeners_[i]);
    }
    advance_greetings();
  }
}

}  // namespace direct

DirectListener::DirectListener(std::vector<HalfEndpoint> endpoints, std::unique_ptr<direct::Reception> reception)
    : endpoints_(std::move(endpoints)), reception_(std::move(reception)) {}

std::shared_ptr<DirectListener> DirectListener::open(const Halves& halves) {
  std::vector<Socket> sockets;
  std::vector<HalfEndpoint> endpoints;
  const Halves wanted = halves.empty() ? Halves{{"local", "127.0.0.1"}} : halves;
  for (const auto& [half, address] : wanted) {
    sockets.push_back(listen_tcp({address, 0}));
    endpoints.push_back({half, address, sockets.back().local().port});
  }
  sockets.push_back(direct::listen_memory({endpoints.front().address, endpoints.front().port}));
  return std::make_shared<DirectListener>(std::move(endpoints),
                                          std::make_unique<direct::Reception>(std::move(sockets)));
}

DirectListener::~DirectListener() = default;

}  // namespace yoke
