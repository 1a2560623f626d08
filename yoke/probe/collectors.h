// One function for each group of facts, each in its own file collect_….cc. They fill their part of the Machine, in the
// order of this list: later ones use what earlier ones found.
#pragma once
#include "yoke/probe/sources.h"
#include "yoke/spec/machine.h"

namespace yoke::probe {

void collect_os(const Sources& sources, spec::Machine& machine);          // names, kernel, firmware, DGX OS
void collect_cpu(const Sources& sources, spec::Machine& machine);         //
void collect_gpus(const Sources& sources, spec::Machine& machine);        // and driver, CUDA
void collect_memory(const Sources& sources, spec::Machine& machine);      // unified or not: after the GPUs
void collect_interfaces(const Sources& sources, spec::Machine& machine);  // and routes
void collect_rdma(const Sources& sources, spec::Machine& machine);        // RDMA devices, their GIDs and interfaces
void collect_topology(const Sources& sources, spec::Machine& machine);    // after GPUs and RDMA devices
void collect_ports(const Sources& sources, spec::Machine& machine);       // which interface is which rail of which port
void collect_settings(const Sources& sources, spec::Machine& machine);    // NCCL libraries, variables, limits
void collect_containers(const Sources& sources, spec::Machine& machine);
void collect_server(const Sources& sources, spec::Machine& machine);  // kernel, bridges, fabric manager: after RDMA
void collect_time(const Sources& sources, spec::Machine& machine);

}  // namespace yoke::probe
