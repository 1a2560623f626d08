// Runs the messages of an operation's step side by side until all are done: always receives while it sends, so ranks
// that send much to each other never block each other. Waits by looking, then by sleeping (patience.h), and ends with
// an Error where the group fails, a peer has left, or the operation's time is over. One thread at a time.
//
// An operation's time counts from the last byte that moved: what is long or slow is not late. That is looked at only
// where the engine sleeps, and so costs an operation nothing.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/spin_policy.h"
#include "yoke/comm/direct/channel.h"

namespace yoke::comm::direct {

class Engine {
 public:
  // `channels` by rank, null for the own; `sleeping` is this rank's word in the shared memory, or null.
  Engine(Health& health, std::vector<Channel*> channels, std::atomic<std::uint32_t>* sleeping, SpinPolicy patience);

  void begin(const MessageHeader& operation, Seconds silence_max);  // of all whom it waits for
  void begin(const MessageHeader& operation, Deadline deadline);    // whatever moves

  // Header fields that are the same for all messages of the operation.
  void send(int peer, std::uint8_t step, const std::byte* payload, std::size_t size);
  void receive(int peer, std::uint8_t step, std::byte* destination, std::size_t size);  // null: by window
  Channel& channel(int peer) { return *channels_[static_cast<std::size_t>(peer)]; }

  // Until nothing is under way. `work` consumes windows; it answers whether it did something.
  template <class Work>
  void run(Work&& work);
  void run() {
    run([] { return false; });
  }

 private:
  void add(Channel& channel);
  bool advance();
  bool busy() const;
  void poll_events();
  void sleep();
  void awake();
  MessageHeader header(int peer, std::uint8_t step, std::size_t size, std::vector<std::uint32_t>& pair_sequences);
  [[noreturn]] void throw_late() const;

  Health& health_;
  std::vector<Channel*> channels_;
  std::vector<Channel*> active_;
  std::atomic<std::uint32_t>* sleeping_;
  SpinPolicy patience_;
  MessageHeader operation_;
  Deadline deadline_ = Deadline::never();
  Seconds silence_max_{0};                       // 0: the deadline stays
  bool moved_ = false;                           // since the last sleep
  std::vector<std::uint32_t> sends_, receives_;  // messages between two ranks, counted by pair
  std::vector<pollfd> waits_;
};

template <class Work>
void Engine::run(Work&& work) {
  for (;;) {
    bool moved = advance();
    moved |= work();
    if (!busy()) break;
    health_.throw_if_failed();
    if (moved) {
      patience_.moved();
      moved_ = true;
    } else if (!patience_.spin()) {
      if (sleeping_) sleeping_->store(1, std::memory_order_seq_cst);
      moved = advance();
      moved |= work();
      moved_ |= moved;
      if (!moved && busy()) sleep();
      awake();
    }
  }
  active_.clear();
}

}  // namespace yoke::comm::direct
