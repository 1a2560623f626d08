// The rules: each a small pure function from the facts to advice, in one written-out table (rules.cc), described with
// source and fixture in docs/checks.md.
//
//   const std::vector<Finding> findings = run_rules(facts);
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/check/cluster_view.h"
#include "yoke/spec/finding.h"

namespace yoke {

// A finding without what the table knows of its rule.
struct Advice {
  std::optional<std::string> node = {};
  std::optional<std::string> subject = {};
  std::string what = {};
  std::string evidence = {};
  std::string consequence = {};
  std::string fix = {};
};
using AdviceList = std::vector<Advice>;

struct Rule {
  std::string_view name;
  Severity severity;
  std::string_view about;  // what it looks for, in a few words
  AdviceList (*look)(const ClusterView& view);
};
std::span<const Rule> rule_table();

// Worst first, then in the table's order.
std::vector<Finding> run_rules(const Survey& facts);

// By subject, each group in the file of its name. Nodes that cannot be looked at, names and addresses:
AdviceList find_nodes_asking(const ClusterView& view);
AdviceList find_nodes_unreachable(const ClusterView& view);
AdviceList find_nodes_unread(const ClusterView& view);
AdviceList find_wifi_addresses(const ClusterView& view);
AdviceList find_bridge_addresses(const ClusterView& view);
AdviceList find_wrong_names(const ClusterView& view);
// links
AdviceList find_nodes_twice(const ClusterView& view);
AdviceList find_nodes_swapped(const ClusterView& view);
AdviceList find_wrong_prefixes(const ClusterView& view);
AdviceList find_missing_interfaces(const ClusterView& view);
AdviceList find_ports_down(const ClusterView& view);
AdviceList find_halves_down(const ClusterView& view);
AdviceList find_halves_unaddressed(const ClusterView& view);
AdviceList find_double_addresses(const ClusterView& view);
AdviceList find_other_addresses(const ClusterView& view);
AdviceList find_other_subnets(const ClusterView& view);
AdviceList find_shared_subnets(const ClusterView& view);
// routes
AdviceList find_routes_elsewhere(const ClusterView& view);
AdviceList find_missing_routes(const ClusterView& view);
// paths
AdviceList find_differing_mtus(const ClusterView& view);
AdviceList find_small_mtus(const ClusterView& view);
AdviceList find_blocked_jumbo_frames(const ClusterView& view);
AdviceList find_silent_halves(const ClusterView& view);
AdviceList find_firewalls(const ClusterView& view);
// ring
AdviceList find_forwarding_off(const ClusterView& view);
AdviceList find_docker_forward_drops(const ClusterView& view);
AdviceList find_broken_ring_paths(const ClusterView& view);
// measured
AdviceList find_dead_halves(const ClusterView& view);
AdviceList find_lossy_halves(const ClusterView& view);
AdviceList find_late_halves(const ClusterView& view);
AdviceList find_idle_halves(const ClusterView& view);
AdviceList find_degraded_halves(const ClusterView& view);
AdviceList find_slow_halves(const ClusterView& view);
AdviceList find_halves_sharing_a_path(const ClusterView& view);
AdviceList find_slow_collectives(const ClusterView& view);
AdviceList find_failed_collectives(const ClusterView& view);
AdviceList find_counted_errors(const ClusterView& view);
// pcie
AdviceList find_narrow_nics(const ClusterView& view);
AdviceList find_narrow_gpus(const ClusterView& view);
AdviceList find_slow_ports(const ClusterView& view);
AdviceList find_far_nics(const ClusterView& view);
// gids
AdviceList find_inactive_rdma_ports(const ClusterView& view);
AdviceList find_empty_gids(const ClusterView& view);
AdviceList find_link_local_gids(const ClusterView& view);
AdviceList find_roce_v1_gids(const ClusterView& view);
AdviceList find_stale_gid_pins(const ClusterView& view);
// pins
AdviceList find_empty_pins(const ClusterView& view);
AdviceList find_pins_of_absent_devices(const ClusterView& view);
AdviceList find_pins_without_rdma(const ClusterView& view);
AdviceList find_unusable_pins(const ClusterView& view);
AdviceList find_pins_of_one_half(const ClusterView& view);
AdviceList find_wide_pins(const ClusterView& view);
// nccl
AdviceList find_nccl_without_architecture(const ClusterView& view);
AdviceList find_bad_nccl_builds(const ClusterView& view);
AdviceList find_nccl_without_rings(const ClusterView& view);
AdviceList find_differing_nccls(const ClusterView& view);
// system
AdviceList find_kernels_without_cma(const ClusterView& view);
AdviceList find_differing_kernels(const ClusterView& view);
AdviceList find_differing_drivers(const ClusterView& view);
AdviceList find_clock_skew(const ClusterView& view);
AdviceList find_containers_without_rdma(const ClusterView& view);
AdviceList find_low_memlock(const ClusterView& view);
// memory
AdviceList find_low_memory(const ClusterView& view);
AdviceList find_used_swap(const ClusterView& view);
AdviceList find_held_page_cache(const ClusterView& view);
// gpus
AdviceList find_dead_gpus(const ClusterView& view);
AdviceList find_stuck_gpus(const ClusterView& view);
AdviceList find_gpus_off_nvlink(const ClusterView& view);

}  // namespace yoke
