// All ranks of a launcher that gives them nothing but rank 0's address (torchrun, a LeaderWorkerSet) tell each other
// one text: rank 0 listens, the others come, and everybody leaves with the texts of all, by rank.
//
//   const std::vector<std::string> all = meet({.rank = 1, .size = 4, .at = {"10.0.0.1", 29501}}, mine, deadline);
//
// Whoever speaks otherwise, or claims a rank that is taken or none, is dropped. At the deadline kTimeout names the
// ranks that did not come. The network is trusted as far as the launcher trusts it.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/socket.h"

namespace yoke {

struct Rendezvous {
  int rank = 0;
  int size = 1;
  Endpoint at;  // where rank 0 listens
};
std::vector<std::string> meet(const Rendezvous& group, const std::string& mine, Deadline deadline);

// The first address of a name, or the address itself. Throws Error(kNotFound).
std::string resolve_address(const std::string& name);

}  // namespace yoke
