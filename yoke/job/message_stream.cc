#include "yoke/job/message_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"

namespace yoke::job {
namespace {

void set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    throw system_error(errno, "cannot make a channel non-blocking");
  }
}

}  // namespace

MessageStream::MessageStream(UniqueFd both) : in_(std::move(both)) { set_nonblocking(in_.get()); }

MessageStream::MessageStream(UniqueFd in, UniqueFd out) : in_(std::move(in)), out_(std::move(out)) {
  set_nonblocking(in_.get());
  set_nonblocking(out_.get());
}

bool MessageStream::read_some() {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = read(in_.get(), buffer, sizeof buffer);
    if (count > 0) reader_.feed({buffer, static_cast<std::size_t>(count)});
    if (count < 0 && errno == EINTR) continue;
    return count > 0 || (count < 0 && errno == EAGAIN);
  }
}

bool MessageStream::write_some() {
  while (queued() > 0) {
    const ssize_t count = write(out_fd(), to_write_.data() + written_, queued());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    written_ += static_cast<std::size_t>(count);
  }
  to_write_.clear();
  written_ = 0;
  return true;
}

}  // namespace yoke::job
