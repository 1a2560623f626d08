// Connects a rank with all others of a membership: of each pair the higher rank connects and the lower accepts; ranks
// of one node by a Unix socket, others by a data and a heartbeat connection on each rail. Peers may come as late as the
// deadline. A rail that does not come up while another to the same peer has is left out after a while.
#pragma once
#include <functional>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/comm/direct/acceptor.h"
#include "yoke/comm/direct/health.h"

namespace yoke::comm::direct {

struct PeerConnections {
  std::vector<Socket> data, heartbeat;  // one for each rail, of a peer on another node; empty: not connected
  Socket memory;                        // of a peer on this node
};

struct AssemblyOptions {
  Seconds half_patience{1.2};  // for a further rail once one is there
  std::function<void()> while_waiting = {};
};

// By rank; the own place is empty. Throws kTimeout naming who is missing, kUnavailable where the group has gone on to a
// later epoch, and whatever the group fails with meanwhile or `while_waiting` throws.
std::vector<PeerConnections> assemble(Acceptor& acceptor, const std::shared_ptr<Inbox>& inbox, Health& health,
                                      AssemblyOptions options, Deadline deadline);

}  // namespace yoke::comm::direct
