#include "yoke/engine/front_line.h"

#include <poll.h>

#include <array>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke {
namespace {

using namespace literals;

constexpr Seconds kSendLimit = 60_s;  // a front that takes nothing for so long is as good as gone

bool readable(int fd, Seconds wait) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(wait.value * 1000));
  if (ready < 0 && errno == EINTR) throw_if_interrupted();
  return ready > 0;
}

}  // namespace

std::vector<FrontMessage> FrontLine::take(Seconds wait) {
  std::array<std::byte, 64 << 10> buffer;
  while (!closed_ && readable(socket_.fd(), wait)) {
    wait = 0_s;
    try {
      const std::size_t count = socket_.receive_some(buffer, Deadline::after(kSendLimit));
      if (count == 0) closed_ = true;
      reader_.feed({reinterpret_cast<const char*>(buffer.data()), count});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted) throw;
      closed_ = true;
    }
  }
  std::vector<FrontMessage> messages;
  while (auto message = reader_.next_front_message()) messages.push_back(std::move(*message));
  return messages;
}

void FrontLine::send(const EngineEvent& event) {
  if (closed_) return;
  try {
    socket_.send_all(encode(event), Deadline::after(kSendLimit));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    closed_ = true;
  }
}

}  // namespace yoke
