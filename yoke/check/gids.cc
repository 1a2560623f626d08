// RDMA ports and their GIDs. The right entry is RoCE v2 with the rail's IPv4 address; its index drifts, so it is only
// ever wrong against a value that somebody wrote down.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

constexpr std::string_view kGidPin = "NCCL_IB_GID_INDEX";

// RoCE ports of rails that work: what has no address has no such entry, and another rule says so.
std::vector<const RailEnd*> roce_ends(const ClusterView& view) {
  std::vector<const RailEnd*> ends;
  for (const RailEnd& end : view.rails) {
    if (end.works() && end.rdma && end.is_ethernet() && end.rdma->state == "ACTIVE") ends.push_back(&end);
  }
  return ends;
}

bool has_address(const RailEnd& end, spec::GidType type) {
  return std::any_of(end.rdma->gids.begin(), end.rdma->gids.end(), [&](const spec::GidEntry& gid) {
    return gid.type == type && gid.ipv4 && gid.ipv4 == end.address->address;
  });
}

bool has_any_ipv4(const RailEnd& end) {
  return std::any_of(end.rdma->gids.begin(), end.rdma->gids.end(), [](const spec::GidEntry& gid) { return gid.ipv4; });
}

Advice about(const RailEnd& end, std::string what, std::string evidence) {
  return {
      .node = end.node->name,
      .subject = end.rdma->name,
      .what = std::move(what),
      .evidence = std::move(evidence),
      .consequence = "RDMA connections over this rail fail (ibv_modify_qp), or use RoCE v1, which no router passes",
      .fix = fmt::format("take the interface down and up: 'ip link set {} down', then 'up'; the table is built again "
                         "from its addresses",
                         end.handle())};
}

}  // namespace

AdviceList find_inactive_rdma_ports(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!end.is_up() || !end.rdma || end.rdma->state == "ACTIVE") continue;
    list.push_back(
        {.node = end.node->name,
         .subject = end.rdma->name,
         .what = fmt::format("the RDMA port of {} on {} is {}", end.title(), end.node->name, end.rdma->state),
         .evidence = fmt::format("{} has a link, {} is {}", end.name, end.rdma->name, end.rdma->state),
         .consequence = "NCCL does not use this rail",
         .fix = "reload the driver ('modprobe -r mlx5_ib; modprobe mlx5_ib') or reboot this node"});
  }
  return list;
}

AdviceList find_empty_gids(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd* end : roce_ends(view)) {
    if (!end->rdma->gids.empty()) continue;
    list.push_back(about(*end, fmt::format("{} on {} has an empty GID table", end->rdma->name, end->node->name),
                         fmt::format("{} has {}, and no entry is in use", end->name, yoke::to_string(*end->address))));
  }
  return list;
}

AdviceList find_link_local_gids(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd* end : roce_ends(view)) {
    if (end->rdma->gids.empty() || has_any_ipv4(*end)) continue;
    list.push_back(about(*end, fmt::format("{} on {} has only link-local GIDs", end->rdma->name, end->node->name),
                         fmt::format("no entry for {} of {}", yoke::to_string(end->address->address), end->name)));
  }
  return list;
}

AdviceList find_roce_v1_gids(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd* end : roce_ends(view)) {
    if (has_address(*end, spec::GidType::kRoceV2) || !has_any_ipv4(*end)) continue;
    list.push_back(about(
        *end, fmt::format("{} on {} has no RoCE v2 entry for its address", end->rdma->name, end->node->name),
        has_address(*end, spec::GidType::kRoceV1)
            ? fmt::format("{} is there as RoCE v1 only", yoke::to_string(end->address->address))
            : fmt::format("its entries are for other addresses than {}", yoke::to_string(end->address->address))));
  }
  return list;
}

AdviceList find_stale_gid_pins(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    for (const spec::NetworkSetting& setting : node.machine->settings) {
      int pinned = -1;
      const char* const last = setting.value.data() + setting.value.size();
      const auto [rest, failure] = std::from_chars(setting.value.data(), last, pinned);
      if (setting.name != kGidPin || failure != std::errc{} || rest != last || pinned < 0) continue;
      std::vector<std::string> wrong;
      for (const RailEnd* end : roce_ends(view)) {
        if (end->node != &node || !end->rdma->gid_index || *end->rdma->gid_index == pinned) continue;
        wrong.push_back(fmt::format("{} needs {}", end->rdma->name, *end->rdma->gid_index));
      }
      if (wrong.empty()) continue;
      list.push_back(
          {.node = node.name,
           .subject = setting.name,
           .what = fmt::format("{}={} on {} is not right on every rail", setting.name, pinned, node.name),
           .evidence = fmt::format("{} (set in {})", fmt::join(wrong, ", "), setting.where),
           .consequence = "NCCL fails or hangs on this rail alone (ibv_modify_qp error 61 or 110)",
           .fix = fmt::format("remove {}: NCCL then finds the right entry of each device by itself", setting.name)});
    }
  }
  return list;
}

}  // namespace yoke::check
