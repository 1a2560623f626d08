// Messages over descriptors that do not block: what an event loop (supervisor.cc) and a rank's line (rank_channel.cc)
// read and write. Owns the descriptors that it is given. One thread at a time.
//
//   MessageStream stream(UniqueFd(in), UniqueFd(out));
//   stream.queue({MessageType::kHeartbeat});            // held until write_some() is called on a writable descriptor
//   if (!stream.read_some()) …                          // the other end is gone
//   while (auto message = stream.next()) …
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "yoke/base/files.h"
#include "yoke/job/message.h"

namespace yoke::job {

class MessageStream {
 public:
  explicit MessageStream(UniqueFd both);     // a socket
  MessageStream(UniqueFd in, UniqueFd out);  // two pipes

  int in_fd() const { return in_.get(); }
  int out_fd() const { return out_ ? out_.get() : in_.get(); }

  void queue(const Message& message) { to_write_ += encode(message); }
  std::size_t queued() const { return to_write_.size() - written_; }

  // Moves what can be moved now; false once the other end is gone.
  bool read_some();
  bool write_some();
  std::optional<Message> next() { return reader_.next(); }

 private:
  UniqueFd in_, out_;  // out_ is missing where in_ is both
  MessageReader reader_;
  std::string to_write_;
  std::size_t written_ = 0;
};

}  // namespace yoke::job
