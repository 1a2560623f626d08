// A machine as ssh reaches it.
#pragma once
#include <string>

namespace yoke {

struct Host {
  std::string name = {};     // as people call it, for messages
  std::string address = {};  // a number, a name, or an alias of the user's ssh configuration
  std::string user = {};     // empty: as ssh chooses
  int port = 0;              // 0: as ssh chooses
};

struct ClusterNode;
Host host_of(const ClusterNode& node);

}  // namespace yoke
