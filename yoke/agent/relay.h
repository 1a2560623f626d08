// A program whose streams travel on a channel of the agent: the supervisor of a job, which must be a process of its
// own. A thread owns the process; the hooks are called from it.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "yoke/base/process.h"
#include "yoke/base/result.h"

namespace yoke::agent {

class Relay {
 public:
  using OnBytes = std::function<void(OutputStream, std::string_view)>;
  using OnEnd = std::function<void(const Result<int>& exit_status)>;
  Relay(const Command& command, OnBytes on_bytes, OnEnd on_end);  // throws where the program cannot be started
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();  // as close_input(); waits for the program's end

  void write(std::string_view bytes);  // to its input; from any thread
  void close_input();
  void stop();  // ends it and all that it started
  bool ended() const { return ended_; }

 private:
  void live();
  int move_until_the_end();
  bool move_input();
  bool move_output();

  Process process_;
  OnBytes on_bytes_;
  OnEnd on_end_;
  std::mutex mutex_;
  std::string to_write_;
  bool close_wanted_ = false;
  std::atomic<bool> stop_wanted_{false};
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace yoke::agent
