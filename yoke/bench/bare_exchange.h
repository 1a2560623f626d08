// The floor under a two-rank all-reduce: each rank sends its bytes through one socket and receives the other's,
// spinning, with no header and no arithmetic. For `--beside socket`. Both ranks make it at the same time, over the
// communicator that is measured; owned by the rank's thread.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/socket.h"
#include "yoke/comm/communicator.h"

namespace yoke {

class BareExchange {
 public:
  // `address` is this rank's own, where rank 0 listens. Throws kUsage for any but two ranks.
  BareExchange(Communicator& comm, const std::string& address, Seconds timeout);
  void run(const Collective& operation);

 private:
  Seconds timeout_;
  Socket socket_;
};

}  // namespace yoke
