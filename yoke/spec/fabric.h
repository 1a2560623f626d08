// Which NICs of a machine are there to join it with others for computing. Servers have further ones, for storage or as
// their way out: these come after the fabric's ports in number, and nothing that a fabric wants is wanted of them.
#pragma once
#include <string>
#include <vector>

#include "yoke/spec/machine.h"

namespace yoke::spec {

// Of interfaces with an RDMA device: those beside the GPUs, where most GPUs have a NIC below the same PCIe switch; of
// these, those of the board that most adapters are. It does not depend on what is cabled, nor on a GPU that is missing
// or was not given to us: a NIC of the same board, as deep on the bus as those beside the others, is one of the fabric
// too.
std::vector<const NetworkInterface*> fabric_among(const Machine& machine, std::vector<const NetworkInterface*> fast);

// The letter by which people call the rail of a fast interface: on a Spark the half of its port (A, B), on a machine
// whose ports are one rail each the port's (A to H on a server of eight).
bool has_halves(const Machine& machine);  // a port of it is several rails
std::string rail_letter(const Machine& machine, const NetworkInterface& interface);

// Among fast_interfaces(), in their order.
std::vector<const NetworkInterface*> fabric_interfaces(const Machine& machine);

}  // namespace yoke::spec
