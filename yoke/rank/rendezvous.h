// All ranks of a launcher that gives them nothing but rank 0's address (torchrun, a LeaderWorkerSet) tell each other
// one text: rank 0 listens, the others come, and everybody leaves with the texts of all, by rank.
//
//   const auto all = meet({.rank = 1, .size = 4, .host = "head", .port = 29501},
//                         [](const std::string& own_address) { return listen_there(own_address); }, deadline);
//
// A text is made once the rank knows the address of its machine by which the others are reached: the one by which it
// came to rank 0, on rank 0 the one by which the others came. Rank 0's name may lead to loopback on its own machine
// (Debian writes it so into /etc/hosts): the one that came by that has rank 0's address.
//
// Rank 0 and its name may both come later than the others. The one that speaks otherwise, or claims a rank that is
// taken or none, is dropped. At the deadline kTimeout names the ranks that did not come.
//
// Both sides prove that they know the secret before a text is exchanged. Without a secret only processes of this user
// on this machine take part (Peers::kThisUser: the kernel says whose a connection is), or everybody who reaches the
// port. Texts travel in clear: what is to stay secret on the network must be derived with the secret.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/result.h"
#include "yoke/base/socket.h"

namespace yoke::rank {

struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";     // rank 0's machine: a name or an address
  int port = 0;                       // where rank 0 listens
  std::string listen_on = "0.0.0.0";  // of rank 0: its machine's addresses, all of them or one
  std::string secret = {};            // the same for all ranks
  enum class Peers { kThisUser, kKnowTheSecret } peers = Peers::kKnowTheSecret;
};

using TellOwn = std::function<std::string(const std::string& own_address)>;
std::vector<std::string> meet(const Rendezvous& group, const TellOwn& mine, Deadline deadline);

// The first address of a name, or the address itself; kNotFound where it has none, kTimeout where the resolver does not
// answer by then.
Result<std::string> resolve_address(const std::string& name, Deadline deadline);

}  // namespace yoke::rank
