#include "yoke/remote/host.h"

#include "yoke/spec/cluster.h"

namespace yoke {

Host host_of(const ClusterNode& node) {
  return {.name = node.name, .address = node.address, .user = node.user.value_or(""), .port = node.port};
}

}  // namespace yoke
