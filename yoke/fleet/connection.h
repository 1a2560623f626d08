// The head's end of the protocol with an agent (yoke/agent/agent_frame.h), over a process that was started somewhere.
// Questions and channels have numbers, and several may be under way. Any thread may use it: the one that waits moves
// the bytes of all, as a RemoteProcess belongs to one thread at a time.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "yoke/agent/agent_frame.h"
#include "yoke/base/clock.h"
#include "yoke/remote/remote_shell.h"

namespace yoke::fleet {

class Connection {
 public:
  Connection(std::unique_ptr<remote::RemoteProcess> process, std::string node);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();  // as begin_end(), and waits for the agent's end

  // Throws where the agent does not come to be.
  void await_hello(Deadline deadline);
  // Of the node's clock before ours, from the message that took the shortest way.
  Seconds clock_ahead() const;

  std::uint32_t ask(std::string_view action, const Document& question);
  // Throws the Error of the far side; kTimeout at the deadline, after which the answer is not waited for any more.
  Document answer(std::uint32_t id, Deadline deadline, const std::function<void(std::string_view)>& on_progress = {});

  // For channels: the next frame of this number; nothing at the deadline. Throws what ended the connection.
  std::optional<agent::AgentFrame> next(std::uint32_t id, Deadline deadline);
  void send(const agent::AgentFrame& frame, Deadline deadline);
  void forget(std::uint32_t id);

  // Lets the agent go: it ends by itself, with what is still asked.
  void begin_end() noexcept;

 private:
  struct Moved {
    std::string bytes, complaint;
    bool at_end = false;
  };
  Moved move(Seconds time);
  void take(const Moved& moved);
  void take(agent::AgentFrame frame);
  Error end_error();
  void hear_time(const agent::AgentFrame& frame);

  std::unique_ptr<remote::RemoteProcess> process_;
  std::string node_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  bool moving_ = false;  // a thread uses process_
  int senders_ = 0;      // threads that want to
  agent::AgentFrameReader reader_;
  std::map<std::uint32_t, std::deque<agent::AgentFrame>> open_;
  std::set<std::uint32_t> asked_;  // and not answered
  std::uint32_t last_id_ = 0;
  std::string complaint_;  // the last that it wrote to standard error
  Instant heard_{};
  bool hello_ = false;
  std::optional<double> ahead_;
  std::optional<Error> ended_;
  bool ending_ = false;
};

}  // namespace yoke::fleet
