// The data socket of one rail: sends and receives what goes at once, never waits, and remembers why it broke. The
// channel gives up a broken path. One thread at a time.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>

#include "yoke/base/socket.h"

namespace yoke::comm::direct {

struct DataPath {
  Socket socket;
  bool live = true;
  std::string broken;  // why, once a call has failed

  bool usable() const { return live && broken.empty(); }
  // How many bytes went; 0 where none can now, or the path is broken.
  std::size_t send(std::span<iovec> parts);
  std::size_t receive(std::span<iovec> parts);
};

}  // namespace yoke::comm::direct
