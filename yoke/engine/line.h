// The line between a Front and an engine of the same process: a pair of sockets.
#pragma once
#include <sys/socket.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/socket.h"

namespace yoke {

struct EngineLine {
  Socket of_front, of_engine;
};

inline EngineLine make_engine_line() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    throw system_error(errno, "cannot make a line to the engine");
  }
  return {Socket(UniqueFd(ends[0]), "the engine"), Socket(UniqueFd(ends[1]), "the front")};
}

}  // namespace yoke
