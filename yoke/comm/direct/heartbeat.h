// The heartbeat of a communicator: a thread that sends a beat on every path to every peer, listens for theirs, and
// evaluates. A path that closes or stays silent too long is lost; a peer without paths is gone, which fails the group.
// It tells the others of a failure, so that all ranks end with the same one, and it says goodbye when the rank leaves
// in order.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/comm/communicator.h"
#include "yoke/comm/direct/health.h"
#include "yoke/comm/direct/wire.h"

namespace yoke::comm::direct {

class Heartbeat {
 public:
  static constexpr int kMemory = -1;  // the half of a path inside the node
  struct Path {
    int peer = 0;
    int rail = 0;
    Socket socket;
  };
  struct Options {
    Seconds silence_limit{1.2};
    std::function<void(const PathEvent&)> on_path = {};
    // Called while a rail is lost, to send again what went by it; true once nothing is left to do.
    std::function<bool()> mend = {};
  };

  Heartbeat(Health& health, std::vector<Path> paths, Options options);
  ~Heartbeat();  // ends the thread, which tells the peers how it ended

  // From now on silence counts also on paths that have not been heard yet: all ranks are known to be there.
  void expect_all();

 private:
  struct PathHealth {
    Path path;
    Instant heard{};
    bool heard_once = false;
    bool lost = false;
    bool ended = false;  // its socket has nothing more to tell
    std::string why;     // it was lost
    Instant lost_at{};
    bool reported = false;  // the loss was evaluated
    std::vector<std::byte> bytes;
  };

  void run();
  void listen(PathHealth& state);
  void take_heartbeats(PathHealth& state);
  void hear(PathHealth& state, const HeartbeatFrame& heartbeat);
  void lose(PathHealth& state, std::string why);
  void check_silence(Instant now);
  bool evaluate(Instant now);
  void lose_rail(PathHealth& state);
  void lose_peer(int peer);
  void send_heartbeat(HeartbeatKind kind);
  void report_failure();
  void report(const PathEvent& event) const;
  std::string rail_name(const Path& path) const;
  std::string describe_loss(const PathHealth& state) const;

  Health& health_;
  Options options_;
  std::vector<PathHealth> paths_;
  std::atomic<bool> stopping_{false}, expecting_all_{false};
  bool failure_reported_ = false, mending_ = false;
  std::thread thread_;
};

}  // namespace yoke::comm::direct
