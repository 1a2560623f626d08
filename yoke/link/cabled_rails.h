// The rails of this machine that have a cable, whatever the cluster file says of them.
#pragma once
#include <string>
#include <vector>

#include "yoke/spec/machine.h"

namespace yoke::link {

struct CabledRail {
  std::string interface;
  int port = 0;
  std::string rail;
};

// Ports of the fabric with an RDMA device and a carrier. One whose address is a bond's or a VLAN's is left out: the
// cluster file names that instead.
std::vector<CabledRail> cabled_rails(const spec::Machine& machine);

}  // namespace yoke::link
