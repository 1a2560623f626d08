// Rank 0's end of the line to the client (client.h). A client that is gone is no error: the engine ends. One that does
// not read, since its own output is not read or since somebody stopped it, is waited for without an end: what it is
// told is kept here, and where that becomes too much rank 0 makes a pause. One thread owns it.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/engine/messages.h"

namespace yoke::engine {

class ClientConnection {
 public:
  explicit ClientConnection(Socket socket) : socket_(std::move(socket)) {}

  // All that has come, waiting at most so long for the first, or until a client that was behind has caught up.
  std::vector<ClientMessage> take(Seconds wait);
  // In one message. Never waits.
  void send(std::span<const EngineEvent> events);
  void send(const EngineEvent& event) { send(std::span(&event, 1)); }
  // The client is so far behind that nothing more should be made for it.
  bool is_behind() const { return outgoing_.size() - sent_ > kMaxHeld; }
  // Before the line is closed: what is kept, as far as the client takes it until then.
  void flush(Deadline deadline);
  bool closed() const { return closed_; }

 private:
  static constexpr std::size_t kMaxHeld = 16 << 20;  // of logits a few steps, of tokens any answer

  bool wait_for(int limit_ms);
  void receive();
  void push_out();
  void close();

  Socket socket_;
  EngineMessageReader reader_;
  std::string outgoing_;
  std::size_t sent_ = 0;  // so much of it has gone
  bool closed_ = false;
};

}  // namespace yoke::engine
