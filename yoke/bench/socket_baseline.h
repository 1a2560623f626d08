// The floor under a two-rank all-reduce: each rank sends its bytes through one socket and receives the other's,
// spinning, with no header and no arithmetic. For `--compare-with socket`. Both ranks make it at the same time, over
// the communicator that is measured; owned by the rank's thread.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/socket.h"
#include "yoke/comm/communicator.h"

namespace yoke::bench {

class SocketBaseline {
 public:
  // `address` is this rank's own, where rank 0 listens. Throws kUsage for any but two ranks.
  SocketBaseline(comm::Communicator& comm, const std::string& address, Seconds timeout);
  void run(const comm::Collective& operation);

 private:
  Seconds timeout_;
  Socket socket_;
};

}  // namespace yoke::bench
