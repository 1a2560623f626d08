#include "yoke/launch/peer_watch.h"

#include "yoke/base/result.h"

namespace yoke::launch {
namespace {

constexpr Seconds kPeerLimit{1};
constexpr std::chrono::milliseconds kPeerPause{1000};

}  // namespace

PeerWatch::PeerWatch(Endpoint peer) : peer_(std::move(peer)), thread_([this] { run(); }) {}

PeerWatch::~PeerWatch() {
  ends_ = true;
  thread_.join();
}

Seconds PeerWatch::silent_for() const {
  const Clock::rep last = last_.load();
  if (last == 0) return Seconds{0};
  return Seconds{std::chrono::duration<double>(Clock::now() - Clock::time_point(Clock::duration(last))).count()};
}

void PeerWatch::run() {
  while (!ends_) {
    if (try_to([&] { return connect_tcp(peer_, {}, Deadline::after(kPeerLimit)); })) {
      last_ = Clock::now().time_since_epoch().count();
    }
    for (int i = 0; i < 20 && !ends_; ++i) std::this_thread::sleep_for(kPeerPause / 20);
  }
}

}  // namespace yoke::launch
