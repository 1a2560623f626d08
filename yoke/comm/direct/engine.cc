#include "yoke/comm/direct/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "yoke/comm/operation.h"

namespace yoke::comm::direct {
namespace {

// Bells may be missed by bugs of the kernel or of ours; looking around this often makes that a delay, not a hang.
constexpr int kSleepMs = 50;

}  // namespace

Engine::Engine(Health& health, std::vector<Channel*> channels, std::atomic<std::uint32_t>* sleeping,
               SpinPolicy patience)
    : health_(health),
      channels_(std::move(channels)),
      sleeping_(sleeping),
      patience_(patience),
      sends_(channels_.size()),
      receives_(channels_.size()) {
  active_.reserve(channels_.size());
}

void Engine::begin(const MessageHeader& operation, Seconds silence_max) {
  begin(operation, Deadline::after(silence_max));
  silence_max_ = silence_max;
}

void Engine::begin(const MessageHeader& operation, Deadline deadline) {
  health_.throw_if_failed();
  operation_ = operation;
  deadline_ = deadline;
  silence_max_ = {0};
  moved_ = false;
  active_.clear();
  patience_.begin_operation();
}

MessageHeader Engine::header(int peer, std::uint8_t step, std::size_t size,
                             std::vector<std::uint32_t>& pair_sequences) {
  MessageHeader header = operation_;
  header.step = step;
  header.size = size;
  if (is_point_to_point(static_cast<CollectiveKind>(header.kind))) {
    header.sequence = ++pair_sequences[static_cast<std::size_t>(peer)];
  }
  return header;
}

void Engine::add(Channel& channel) {
  if (std::ranges::find(active_, &channel) == active_.end()) active_.push_back(&channel);
}

void Engine::send(int peer, std::uint8_t step, const std::byte* payload, std::size_t size) {
  add(channel(peer));
  channel(peer).send(header(peer, step, size, sends_), payload);
}

void Engine::receive(int peer, std::uint8_t step, std::byte* destination, std::size_t size) {
  add(channel(peer));
  channel(peer).receive(header(peer, step, size, receives_), destination);
}

bool Engine::advance() {
  bool moved = false;
  for (Channel* channel : active_) {
    if (channel->sending() || channel->receiving()) moved |= channel->advance();
  }
  return moved;
}

bool Engine::busy() const {
  return std::ranges::any_of(active_, [](const Channel* c) { return c->sending() || c->receiving(); });
}

void Engine::sleep() {
  if (std::exchange(moved_, false) && silence_max_.value > 0) deadline_ = Deadline::after(silence_max_);
  waits_.assign(1, {health_.caller_wakeup.fd(), POLLIN, 0});
  for (Channel* channel : active_) {
    if (channel->sending() || channel->receiving()) channel->add_waits(waits_);
  }
  const int ready = poll(waits_.data(), waits_.size(), deadline_.poll_timeout_ms(kSleepMs));
  if (ready > 0 && waits_[0].revents != 0) health_.caller_wakeup.clear();
  if (ready <= 0) poll_events();
  if (!deadline_.expired()) return;
  moved_ = advance();  // what came while we slept came in time
  if (!moved_) throw_late();
}

void Engine::awake() {
  if (sleeping_) sleeping_->store(0, std::memory_order_relaxed);
  patience_.slept();
}

// Nothing has come for a while: is there reason to wait on?
void Engine::poll_events() {
  for (const Channel* channel : active_) {
    const bool waits = channel->sending() || channel->receiving();
    if (waits && health_.peer(channel->peer()).left.load()) {
      throw Error(ErrorCode::kUnavailable, fmt::format("{} has left the group, and {} needs it",
                                                       health_.name(channel->peer()), describe(operation_)));
    }
  }
}

void Engine::throw_late() const {
  std::vector<std::string> late;
  for (const Channel* channel : active_) {
    if (!channel->sending() && !channel->receiving()) continue;
    const PeerHealth& peer = health_.peer(channel->peer());
    const std::uint64_t begun = peer.begun, finished = peer.finished;
    // As its last heartbeat said, which may be a tenth of a second old.
    const std::string where =
        begun > finished ? fmt::format("was last heard of in operation {}", begun)
                         : fmt::format("was last heard of after operation {}, before {}", finished, finished + 1);
    late.push_back(fmt::format("{} {}", health_.name(channel->peer()), where));
  }
  throw Error(ErrorCode::kTimeout, fmt::format("{} took too long: {}", describe(operation_), fmt::join(late, ", ")),
              "do all ranks call the same operations in the same order?");
}

}  // namespace yoke::comm::direct
