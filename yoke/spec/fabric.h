// Which NICs of a machine are there to join it with others for computing. Servers have further ones, for storage or as
// their way out: these come after the fabric's ports in number, and nothing that a fabric wants is wanted of them.
#pragma once
#include <vector>

#include "yoke/spec/machine.h"

namespace yoke {

// Of interfaces with an RDMA device: those beside the GPUs, where most GPUs have a NIC below the same PCIe switch; of
// these, those of the board that most adapters are. It does not depend on what is cabled.
std::vector<const NetworkInterface*> fabric_among(const Machine& machine, std::vector<const NetworkInterface*> fast);

// Among fast_interfaces(), in their order.
std::vector<const NetworkInterface*> fabric_interfaces(const Machine& machine);

}  // namespace yoke
