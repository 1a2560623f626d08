// Kernel, driver, clock, and what containers are given.
#include <fmt/format.h>

#include <cmath>

#include "yoke/check/differences.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

using namespace literals;

constexpr Seconds kMaxSkew{2};
// A job registers its buffers, hundreds of MiB; a login shell's usual limit is 8 MiB.
constexpr Bytes kMinMemlock = 1_GiB;

}  // namespace

AdviceList find_kernels_without_cma(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    // Kernels that hand memory over to the next (kexec handover) count it as free and have none: 7.0.0-1019, 7.0.0-31.
    const spec::Memory& memory = node.machine->memory;
    if (!memory.cma_total || !memory.cma_free || *memory.cma_free <= *memory.cma_total) continue;
    list.push_back(
        {.node = node.name,
         .subject = node.machine->kernel,
         .what = fmt::format("the kernel of {} has no memory set aside for RDMA", node.name),
         .evidence = fmt::format("kernel {}; /proc/meminfo has CmaFree {}, more than CmaTotal {}", node.machine->kernel,
                                 yoke::to_string(*memory.cma_free), yoke::to_string(*memory.cma_total)),
         .consequence = "ibv_reg_mr fails with ENOMEM: NCCL does not start over RDMA",
         .fix = "boot it with kho=off on the kernel's command line, or boot another kernel"});
  }
  return list;
}

AdviceList find_differing_kernels(const ClusterView& view) {
  const auto difference = find_difference(view.facts, "kernel");
  if (!difference) return {};
  return {{.what = "the nodes run different kernels",
           .evidence = to_string(*difference),
           .consequence = "NIC driver and RDMA behave differently at the two ends: hard to explain faults",
           .fix = "update all nodes to the same kernel"}};
}

AdviceList find_differing_drivers(const ClusterView& view) {
  const auto difference = find_difference(view.facts, "driver");
  if (!difference) return {};
  return {{.what = "the nodes run different GPU drivers",
           .evidence = to_string(*difference),
           .consequence = "a program or container that runs on one node may not start on the other",
           .fix = "update all nodes to the same driver"}};
}

AdviceList find_clock_skew(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.clock_ahead || std::abs(node.clock_ahead->value) < kMaxSkew.value) continue;
    list.push_back(
        {.node = node.name,
         .subject = "clock",
         .what = fmt::format("the clock of {} is {} {}", node.name,
                             yoke::to_string(Seconds{std::abs(node.clock_ahead->value)}),
                             node.clock_ahead->value > 0 ? "ahead" : "behind"),
         .evidence = "against the head's clock, asked over ssh",
         .consequence = "logs cannot be compared, certificates and tokens look expired, make rebuilds wrongly",
         .fix = "'timedatectl set-ntp true' there, or start chrony"});
  }
  return list;
}

AdviceList find_containers_without_rdma(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab || !node.machine->containers.inside) continue;
    if (!has_active_rdma(*node.machine) || !node.machine->containers.rdma_access.empty()) continue;
    list.push_back({.node = node.name,
                    .subject = "/dev/infiniband",
                    .what = fmt::format("the container on {} cannot use RDMA", node.name),
                    .evidence = fmt::format("inside {}; the machine has RDMA devices, but there is no /dev/infiniband",
                                            *node.machine->containers.inside),
                    .consequence = "NCCL falls back to TCP without an error (NET/Socket)",
                    .fix = node.machine->containers.inside == "kubernetes"
                               ? "give the pod the devices (the RDMA device plugin's resource in its limits), IPC_LOCK "
                                 "and hostNetwork"
                               : "start it with --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1, and "
                                 "--network=host"});
  }
  return list;
}

AdviceList find_low_memlock(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.lab || node.machine->memlock_unlimited || !node.machine->memlock) continue;
    if (*node.machine->memlock >= kMinMemlock || !has_active_rdma(*node.machine)) continue;
    const bool inside = node.machine->containers.inside.has_value();
    list.push_back({.node = node.name,
                    .subject = "memlock",
                    .what = fmt::format("programs on {} may lock only {} of memory", node.name,
                                        yoke::to_string(*node.machine->memlock)),
                    .evidence = "'ulimit -l' of the login that yoke used",
                    .consequence = "RDMA buffers cannot be registered (ibv_reg_mr: ENOMEM); NCCL fails or uses TCP",
                    .fix = inside ? "start the container with --ulimit memlock=-1 --cap-add=IPC_LOCK"
                                  : "'* - memlock unlimited' in /etc/security/limits.d/, then log in again ('yoke link "
                                    "setup' writes it)"});
  }
  return list;
}

}  // namespace yoke::check
