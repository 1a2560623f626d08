// Rank 0's end of the line to the front (front.h). A front that is gone is no error: the engine ends. One thread owns
// it.
#pragma once
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/engine/messages.h"

namespace yoke {

class FrontLine {
 public:
  explicit FrontLine(Socket socket) : socket_(std::move(socket)) {}

  // All that has come, waiting at most so long for the first.
  std::vector<FrontMessage> take(Seconds wait);
  void send(const EngineEvent& event);
  bool closed() const { return closed_; }

 private:
  Socket socket_;
  EngineMessageReader reader_;
  bool closed_ = false;
};

}  // namespace yoke
