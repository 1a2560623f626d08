// The functions of the table in rules.cc (rule.h says what a rule is).
#pragma once
#include <string_view>

#include "yoke/check/rule.h"

namespace yoke::check {

// How addresses that a discovery found are mended.
inline constexpr std::string_view kNewAddresses =
    "'yoke link discover --new-addresses -o cluster.yaml --force' proposes better addresses, 'yoke link setup' makes "
    "them";

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
AdviceList find_unlisted_rails(const ClusterView& view);
AdviceList find_ports_down(const ClusterView& view);
AdviceList find_rails_down(const ClusterView& view);
AdviceList find_incomplete_setups(const ClusterView& view);
AdviceList find_nodes_not_set_up(const ClusterView& view);
AdviceList find_rails_unaddressed(const ClusterView& view);
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
AdviceList find_silent_rails(const ClusterView& view);
AdviceList find_firewalls(const ClusterView& view);
// ring
AdviceList find_forwarding_off(const ClusterView& view);
AdviceList find_docker_forward_drops(const ClusterView& view);
AdviceList find_broken_ring_paths(const ClusterView& view);
// cabling
AdviceList find_cable_loops(const ClusterView& view);
AdviceList find_crossed_rails(const ClusterView& view);
AdviceList find_crossed_ports(const ClusterView& view);
AdviceList find_extra_cables(const ClusterView& view);
AdviceList find_unlisted_cables(const ClusterView& view);
AdviceList find_silent_nodes(const ClusterView& view);
AdviceList find_rails_unheard(const ClusterView& view);
AdviceList find_one_way_rails(const ClusterView& view);
AdviceList find_unknown_topology(const ClusterView& view);
AdviceList find_link_local_addresses(const ClusterView& view);
AdviceList find_unconfirmed_beacons(const ClusterView& view);
AdviceList report_unknown_nodes(const ClusterView& view);
// measured
AdviceList find_dead_rails(const ClusterView& view);
AdviceList find_lossy_rails(const ClusterView& view);
AdviceList find_late_rails(const ClusterView& view);
AdviceList find_unstable_rails(const ClusterView& view);
AdviceList find_idle_rails(const ClusterView& view);
AdviceList find_degraded_rails(const ClusterView& view);
AdviceList find_slow_rails(const ClusterView& view);
AdviceList find_rails_sharing_a_path(const ClusterView& view);
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
AdviceList find_pins_of_one_rail(const ClusterView& view);
AdviceList find_wide_pins(const ClusterView& view);
// nccl
AdviceList find_nccl_without_architecture(const ClusterView& view);
AdviceList find_bad_nccl_builds(const ClusterView& view);
AdviceList find_nccl_without_rings(const ClusterView& view);
AdviceList find_differing_nccls(const ClusterView& view);
// nccl_log
AdviceList find_nccl_failures(const ClusterView& view);
AdviceList find_nccl_tcp(const ClusterView& view);
AdviceList find_nccl_ring_collapse(const ClusterView& view);
AdviceList find_nccl_failed_connections(const ClusterView& view);
AdviceList find_nccl_slow_results(const ClusterView& view);
AdviceList find_nccl_cut_logs(const ClusterView& view);
AdviceList find_nccl_one_rail(const ClusterView& view);
AdviceList find_nccl_link_local_gids(const ClusterView& view);
AdviceList find_nccl_small_packets(const ClusterView& view);
// nccl_log_server
AdviceList find_nccl_without_p2p(const ClusterView& view);
AdviceList find_nccl_without_nvls(const ClusterView& view);
AdviceList find_nccl_without_gpu_direct(const ClusterView& view);
AdviceList find_nccl_few_nics(const ClusterView& view);
AdviceList find_nccl_one_nic(const ClusterView& view);
AdviceList find_nccl_few_channels(const ClusterView& view);
AdviceList find_nccl_ring_order(const ClusterView& view);
AdviceList find_nccl_missing_plugins(const ClusterView& view);
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
AdviceList find_slower_memory(const ClusterView& view);
AdviceList find_held_page_cache(const ClusterView& view);
// gpus
AdviceList find_dead_gpus(const ClusterView& view);
AdviceList find_stuck_gpus(const ClusterView& view);
AdviceList find_gpus_off_nvlink(const ClusterView& view);
// servers
AdviceList find_missing_gpus(const ClusterView& view);
AdviceList find_missing_nvlinks(const ClusterView& view);
AdviceList find_nvlink_errors(const ClusterView& view);
AdviceList find_stopped_fabric_managers(const ClusterView& view);
AdviceList find_differing_fabric_managers(const ClusterView& view);
AdviceList find_old_drivers(const ClusterView& view);
AdviceList find_old_toolkits(const ClusterView& view);
// gpu_health
AdviceList find_throttled_gpus(const ClusterView& view);
AdviceList find_locked_clocks(const ClusterView& view);
AdviceList find_low_power_limits(const ClusterView& view);
AdviceList find_held_gpu_memory(const ClusterView& view);
AdviceList find_ecc_errors(const ClusterView& view);
AdviceList find_row_remaps(const ClusterView& view);
AdviceList find_xids(const ClusterView& view);
AdviceList find_persistence_off(const ClusterView& view);
// gpu_network
AdviceList find_acs_redirects(const ClusterView& view);
AdviceList find_translating_iommus(const ClusterView& view);
AdviceList find_missing_gpu_direct(const ClusterView& view);
AdviceList find_pins_of_some_rails(const ClusterView& view);
AdviceList find_held_huge_pages(const ClusterView& view);
AdviceList find_differing_flow_control(const ClusterView& view);
AdviceList find_classes_without_flow_control(const ClusterView& view);
AdviceList find_ignored_marks(const ClusterView& view);
AdviceList find_lossy_ports(const ClusterView& view);
AdviceList find_paused_rails(const ClusterView& view);
AdviceList find_flapping_ports(const ClusterView& view);

}  // namespace yoke::check
