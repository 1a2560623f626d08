#include "yoke/probe/probe.h"

#include "yoke/probe/collectors.h"

namespace yoke::probe {

spec::Machine probe_machine(const Sources& sources) {
  spec::Machine machine;
  collect_os(sources, machine);
  collect_cpu(sources, machine);
  collect_gpus(sources, machine);
  collect_memory(sources, machine);
  collect_interfaces(sources, machine);
  collect_rdma(sources, machine);
  collect_topology(sources, machine);
  collect_ports(sources, machine);
  collect_settings(sources, machine);
  collect_containers(sources, machine);
  collect_server(sources, machine);
  collect_time(sources, machine);
  return machine;
}

}  // namespace yoke::probe
