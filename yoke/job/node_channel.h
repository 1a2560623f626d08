// The head's end of the channel to one node's supervisor: reaches the node (yoke/fleet/node.h), lets its agent start
// `yoke node`, and moves messages, in a thread of its own. A RemoteProcess cannot be polled together with others, and
// reaching a node may take long, so each has a thread.
//
// What happens is put into the inbox that all channels of a job share; send() and finish() may be called from any
// thread. A channel whose node is lost finds out by itself whether the node still answers.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/fleet/node.h"
#include "yoke/job/message.h"
#include "yoke/remote/remote_shell.h"

namespace yoke::job {

struct ChannelEvent {
  enum class Kind {
    kMessage,          // in `message`
    kHeard,            // a heartbeat
    kFailed,           // it never came to be, or what came was no message: `error`
    kSupervisorEnded,  // before it was to: `error`
    kNodeDead,         // `error`
    kChannelGone,      // but the node answers: `error`
    kFinished,         // nothing more comes, and nothing is left there that could be ended
  };
  int node = 0;
  Kind kind = Kind::kMessage;
  Message message = {};
  std::optional<Error> error = {};
};

// From the channels to the one who reads.
class Inbox {
 public:
  void push(ChannelEvent event);                       // waits while it is full
  std::optional<ChannelEvent> pop(Deadline deadline);  // nothing at the deadline
  void wake();                                         // lets a pop return with nothing

 private:
  std::mutex mutex_;
  std::condition_variable filled_, emptied_;
  std::deque<ChannelEvent> events_;
  std::size_t bytes_ = 0;  // of all that is in it
  bool woken_ = false;
};

struct ChannelOptions {
  int index = 0;  // of the node in the job
  std::shared_ptr<fleet::Node> node;
  std::string tag;  // of the job, in the environment of all that belongs to it
};

class NodeChannel {
 public:
  NodeChannel(ChannelOptions options, Inbox& inbox);
  NodeChannel(const NodeChannel&) = delete;
  NodeChannel& operator=(const NodeChannel&) = delete;
  ~NodeChannel();  // as finish(), and waits for it

  void send(const Message& message);
  // Closes the channel once what was sent is on its way; the supervisor then ends by itself, or is ended.
  void finish();
  // If the node was reached in an allocation of Slurm that has ended: that. Asks Slurm's controller, for up to 3 s.
  std::optional<Error> ended_allocation() const;

 private:
  void live();
  void open();
  void move_messages();
  void move_out();
  bool take_in();
  void explain_end();
  void close();
  void clean();
  void put(ChannelEvent::Kind kind, Error error);

  ChannelOptions options_;
  Inbox& inbox_;
  std::unique_ptr<remote::RemoteProcess> process_;
  MessageReader reader_;
  std::string errors_;  // the last that the supervisor wrote to standard error
  bool heard_ = false;  // anything at all
  bool gone_ = false;   // it said that nothing is left
  // For a supervisor to end its ranks once its channel is closed: their grace, and what the kernel needs.
  Seconds end_limit_{8};
  Instant last_heard_{};
  Instant last_heartbeat_{};

  std::mutex mutex_;
  std::string to_send_;
  std::atomic<bool> finishing_{false};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace yoke::job
