// A machine as ssh reaches it.
#pragma once
#include <string>

namespace yoke::spec {
struct ClusterNode;
}
namespace yoke::remote {

struct Host {
  std::string name = {};     // as people call it, for messages
  std::string address = {};  // a number, a name, or an alias of the user's ssh configuration
  std::string user = {};     // empty: as ssh chooses
  int port = 0;              // 0: as ssh chooses
};

Host host_of(const spec::ClusterNode& node);

// Whether a node is this very machine, by its addresses or its name: it is never logged in to. Loopback addresses are
// everybody's: they count for the first node of a cluster file only.
bool is_this_machine(const spec::ClusterNode& node, int index);

}  // namespace yoke::remote
