#include "yoke/remote/host.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "yoke/base/files.h"
#include "yoke/spec/cluster.h"

namespace yoke::remote {

Host host_of(const spec::ClusterNode& node) {
  return {.name = node.name, .address = node.address, .user = node.user.value_or(""), .port = node.port};
}

bool is_this_machine(const spec::ClusterNode& node, int index) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, node.address.c_str(), &address.sin_addr) == 1) {
    const bool loopback = (ntohl(address.sin_addr.s_addr) >> 24U) == 127;
    // Only an address of our own can be bound.
    const UniqueFd probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return (!loopback || index == 0) && bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && (node.address == name || node.name == name);
}

}  // namespace yoke::remote
