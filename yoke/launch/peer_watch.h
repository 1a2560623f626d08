// Whether a port of another node still answers, asked every second in a thread of its own. Until its first answer
// nothing is known: an engine may take half an hour to open it.
#pragma once
#include <atomic>
#include <chrono>
#include <thread>

#include "yoke/base/socket.h"
#include "yoke/base/units.h"

namespace yoke::launch {

class PeerWatch {
 public:
  explicit PeerWatch(Endpoint peer);
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  ~PeerWatch();

  Seconds silent_for() const;  // since its last answer; 0 before the first
  const Endpoint& peer() const { return peer_; }

 private:
  using Clock = std::chrono::steady_clock;
  void run();

  const Endpoint peer_;
  std::atomic<Clock::rep> last_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace yoke::launch
