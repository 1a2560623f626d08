#include "yoke/check/rules.h"

#include <algorithm>
#include <array>

namespace yoke {
namespace {

constexpr Severity kFault = Severity::kFault;
constexpr Severity kWarning = Severity::kWarning;

// What explains others comes before them; docs/checks.md has the same order.
constexpr std::array kRules = {
    Rule{"ssh-asks", kFault, "ssh to a node asks for a password or a host key", find_nodes_asking},
    Rule{"node-unreachable", kFault, "a node does not answer", find_nodes_unreachable},
    Rule{"node-unread", kFault, "a node was reached, but its facts could not be read", find_nodes_unread},
    Rule{"node-twice", kFault, "two nodes of the cluster file are one machine", find_nodes_twice},
    Rule{"nodes-swapped", kFault, "a node's address leads to another node", find_nodes_swapped},
    Rule{"address-wifi", kWarning, "an address of the cluster file is a Wi-Fi address", find_wifi_addresses},
    Rule{"address-bridge", kFault, "an address of the cluster file is a container bridge's", find_bridge_addresses},
    Rule{"name-wrong", kFault, "a node's name resolves to another machine", find_wrong_names},
    Rule{"interface-missing", kFault, "the cluster file names an interface that is not there", find_missing_interfaces},
    Rule{"port-down", kFault, "no half of a port has a link", find_ports_down},
    Rule{"half-down", kFault, "one half has no link, the other has", find_halves_down},
    Rule{"half-unaddressed", kWarning, "a half has no IPv4 address", find_halves_unaddressed},
    Rule{"address-twice", kFault, "two nodes have one address", find_double_addresses},
    Rule{"address-differs", kWarning, "a half has another address than the cluster file", find_other_addresses},
    Rule{"prefix-differs", kFault, "an address has another prefix length than it should", find_wrong_prefixes},
    Rule{"subnet-differs", kFault, "the ends of a half are in different networks", find_other_subnets},
    Rule{"subnet-shared", kWarning, "a half shares its network with another interface of its node",
         find_shared_subnets},
    Rule{"mtu-differs", kFault, "the ends of a half have different MTUs", find_differing_mtus},
    Rule{"mtu-small", kWarning, "the MTU is below the cluster's", find_small_mtus},
    Rule{"jumbo-blocked", kFault, "large frames do not pass although both ends allow them", find_blocked_jumbo_frames},
    Rule{"route-elsewhere", kFault, "packets to a peer's fast address leave by another port", find_routes_elsewhere},
    Rule{"route-missing", kFault, "no route leads to a peer's fast address", find_missing_routes},
    Rule{"half-silent", kFault, "a half that should work answers no ping", find_silent_halves},
    Rule{"firewall", kFault, "new TCP connections, or all packets, are swallowed or rejected on a half",
         find_firewalls},
    Rule{"forwarding-off", kFault, "a node of a ring must forward, and does not", find_forwarding_off},
    Rule{"docker-forward", kFault, "a packet filter, as Docker's, drops what a ring forwards",
         find_docker_forward_drops},
    Rule{"ring-path", kFault, "an address around a ring is not reached, and no other rule says why",
         find_broken_ring_paths},
    Rule{"rdma-down", kFault, "an interface has a link, its RDMA port is not active", find_inactive_rdma_ports},
    Rule{"gid-empty", kFault, "an RDMA device has no GID at all", find_empty_gids},
    Rule{"gid-link-local", kWarning, "an RDMA device of an addressed half has only link-local GIDs",
         find_link_local_gids},
    Rule{"gid-roce-v1", kWarning, "the half's address is there as RoCE v1 only", find_roce_v1_gids},
    Rule{"gid-pinned", kFault, "a pinned GID index is not the right one now", find_stale_gid_pins},
    Rule{"pin-empty", kFault, "a network variable is set to nothing", find_empty_pins},
    Rule{"pin-absent", kFault, "a variable names a device that is not there", find_pins_of_absent_devices},
    Rule{"pin-no-rdma", kFault, "a variable keeps NCCL from using RDMA", find_pins_without_rdma},
    Rule{"pin-unusable", kFault, "a variable leaves no device with a link and an address", find_unusable_pins},
    Rule{"pin-one-half", kWarning, "NCCL_IB_HCA leaves one half of a port only", find_pins_of_one_half},
    Rule{"pin-wide", kWarning, "a variable matches more devices than it names", find_wide_pins},
    Rule{"pcie-narrow", kWarning, "a NIC's PCIe link is below its best", find_narrow_nics},
    Rule{"gpu-pcie-narrow", kWarning, "a GPU's PCIe link has fewer lanes than it could", find_narrow_gpus},
    Rule{"port-slow", kWarning, "a port agreed on a lower speed than its kind", find_slow_ports},
    Rule{"nic-far", kWarning, "a GPU has no NIC as near as the other GPUs have", find_far_nics},
    Rule{"half-dead", kFault, "nothing passes a half, and no other rule says why", find_dead_halves},
    Rule{"half-lossy", kFault, "a half loses packets that nothing pushes out", find_lossy_halves},
    Rule{"half-late", kWarning, "a half takes far longer than a cable", find_late_halves},
    Rule{"half-idle", kFault, "a half carries nothing while the other is busy", find_idle_halves},
    Rule{"half-degraded", kFault, "a healthy-looking half carries 6 to 25%", find_degraded_halves},
    Rule{"half-slow", kWarning, "a half carries less than 85% of what it should", find_slow_halves},
    Rule{"halves-share", kWarning, "together the halves carry far less than one after the other",
         find_halves_sharing_a_path},
    Rule{"collective-failed", kFault, "an all-reduce over all nodes fails, and no other rule says why",
         find_failed_collectives},
    Rule{"collective-slow", kWarning, "the link is fast, an all-reduce over it is not", find_slow_collectives},
    Rule{"errors-counted", kFault, "error counters rose while measuring", find_counted_errors},
    Rule{"nccl-architecture", kFault, "an NCCL library has no code for the GPU", find_nccl_without_architecture},
    Rule{"nccl-bad-build", kWarning, "an NCCL library that is known to hang or to be slow here", find_bad_nccl_builds},
    Rule{"nccl-no-ring", kWarning, "NCCL before 2.30.7 on a ring", find_nccl_without_rings},
    Rule{"nccl-differs", kWarning, "nodes have different NCCL libraries", find_differing_nccls},
    Rule{"kernel-no-cma", kFault, "a kernel without memory for RDMA (7.0.0-1019)", find_kernels_without_cma},
    Rule{"kernel-differs", kWarning, "nodes run different kernels", find_differing_kernels},
    Rule{"driver-differs", kWarning, "nodes run different GPU drivers", find_differing_drivers},
    Rule{"clock-skew", kWarning, "a node's clock is seconds off", find_clock_skew},
    Rule{"container-no-rdma", kFault, "a container without /dev/infiniband", find_containers_without_rdma},
    Rule{"memlock-low", kFault, "too little memory may be locked for RDMA", find_low_memlock},
    Rule{"memory-low", kWarning, "hardly any memory is available", find_low_memory},
    Rule{"swap-used", kWarning, "unified memory is being swapped", find_used_swap},
    Rule{"page-cache-held", kWarning, "the page cache hides unified memory from CUDA", find_held_page_cache},
    Rule{"gpu-dead", kFault, "a GPU is on the bus but does not work", find_dead_gpus},
    Rule{"gpu-stuck", kFault, "a GPU under load stays at a low clock and power", find_stuck_gpus},
    Rule{"gpu-off-nvlink", kFault, "a GPU is missing from the NVLink matrix", find_gpus_off_nvlink},
};

}  // namespace

std::span<const Rule> rule_table() { return kRules; }

std::vector<Finding> run_rules(const Survey& facts) {
  const ClusterView view(facts);
  std::vector<Finding> findings;
  for (const Rule& rule : kRules) {
    for (Advice& advice : rule.look(view)) {
      findings.push_back({.rule = std::string(rule.name),
                          .severity = rule.severity,
                          .node = std::move(advice.node),
                          .subject = std::move(advice.subject),
                          .what = std::move(advice.what),
                          .evidence = std::move(advice.evidence),
                          .consequence = std::move(advice.consequence),
                          .fix = std::move(advice.fix)});
    }
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace yoke
