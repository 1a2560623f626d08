// The heart of a communicator: a thread that beats on every path to every peer, listens for their beats, and judges. A
// path that closes or stays silent too long is lost; a peer without paths is gone, which fails the group. It tells the
// others of a failure, so that all ranks end with the same one, and it says goodbye when the rank leaves in order.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/direct/vitals.h"
#include "yoke/comm/direct/wire.h"

namespace yoke::direct {

class Heart {
 public:
  static constexpr int kMemory = -1;  // the half of a path inside the node
  struct Path {
    int peer = 0;
    int half = 0;
    Socket socket;
  };
  struct Options {
    Seconds silence_limit{1.2};
    std::function<void(const PathEvent&)> on_path = {};
    // Called while a half is lost, to send again what went by it; true once nothing is left to do.
    std::function<bool()> mend = {};
  };

  Heart(Vitals& vitals, std::vector<Path> paths, Options options);
  ~Heart();  // ends the thread, which tells the peers how it ended

  // From now on silence counts also on paths that have not been heard yet: all ranks are known to be there.
  void expect_all();

 private:
  struct Pulse {
    Path path;
    Instant heard{};
    bool heard_once = false;
    bool lost = false;
    bool ended = false;  // its socket has nothing more to tell
    std::string why;     // it was lost
    Instant lost_at{};
    bool told = false;  // the loss was judged
    std::vector<std::byte> bytes;
  };

  void run();
  void listen(Pulse& pulse);
  void take_beats(Pulse& pulse);
  void hear(Pulse& pulse, const Beat& beat);
  void lose(Pulse& pulse, std::string why);
  void look_for_silence(Instant now);
  bool judge(Instant now);
  void lose_half(Pulse& pulse);
  void lose_peer(int peer);
  void say(BeatKind kind);
  void tell_failure();
  void report(const PathEvent& event) const;
  std::string half_name(const Path& path) const;
  std::string describe_loss(const Pulse& pulse) const;

  Vitals& vitals_;
  Options options_;
  std::vector<Pulse> pulses_;
  std::atomic<bool> stopping_{false}, expecting_all_{false};
  bool failure_told_ = false, mending_ = false;
  std::thread thread_;
};

}  // namespace yoke::direct
