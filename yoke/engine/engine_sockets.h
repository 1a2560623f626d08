// The line between an EngineConnection and an engine of the same process: a pair of sockets.
#pragma once
#include <sys/socket.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/socket.h"

namespace yoke::engine {

struct EngineSocketPair {
  Socket of_client, of_engine;
};

inline EngineSocketPair make_engine_sockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    throw system_error(errno, "cannot make a line to the engine");
  }
  return {Socket(UniqueFd(ends[0]), "the engine"), Socket(UniqueFd(ends[1]), "the client")};
}

}  // namespace yoke::engine
