#include "yoke/plan/collectives.h"
#include "yoke/plan/scales.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace yoke::plan {
namespace {

constexpr double kRoceUse = 0.9;  // of line rate, with MTU 9000
// A mesh of four against two nodes with a whole cable. Two of its nodes have one half of a port between them instead of
// two. All four send each 3/2 of the buffer over three halves, of which two share one of the NIC's two PCIe links: it
// carries a whole buffer, where two nodes send half of one over each.
constexpr double kMeshStretch = 2;
constexpr double kServerNodeStart = 20e-6;  // NCCL between servers with GPUDirect, recalled: 15 to 25 us

// Starts grow with each doubling as from two to four nodes. Only what is needed is read, so that rows are counted
// right.
double start_over_nodes(Constant at2, Constant at4, int nodes, const Constants& c) {
  if (nodes <= 2) return c[at2];
  if (nodes == 4) return c[at4];
  return c[at2] + (c[at4] - c[at2]) * (std::log2(nodes) - 1);
}
// Rates fall from two to four nodes (two hops in a ring), then stay.
double rate_over_nodes(Constant at2, Constant at4, int nodes, const Constants& c) {
  if (nodes <= 2) return c[at2];
  return nodes >= 4 ? c[at4] : (c[at2] + c[at4]) / 2;
}

// Constants of GB10 units hold for a full-rate link; a slower one stretches the bytes.
double gb10_seconds(const Machines& machines, int nodes, double bytes, const Constants& c) {
  const bool is_mesh = machines.topology == spec::Topology::kMesh;
  const double slower = std::max(machines.facts->nic_limit.value / machines.link, 1.0) * (is_mesh ? kMeshStretch : 1.0);
  const int rate_nodes = is_mesh ? 2 : nodes;  // nothing takes two hops
  switch (machines.exchange) {
    case Exchange::kOneShot:
      return start_over_nodes(Constant::kOneShotStart2, Constant::kOneShotStart4, nodes, c) * kMicro +
             slower * bytes /
                 (rate_over_nodes(Constant::kOneShotRate2, Constant::kOneShotRate4, rate_nodes, c) * kGiga);
    case Exchange::kNcclTests:
      return (c[Constant::kNcclTestsStart] + (nodes > 2 ? c[Constant::kNcclTestsStartPerNode] * (nodes - 2) : 0)) *
                 kMicro +
             slower * bytes / (c[Constant::kNcclTestsRate] * kGiga);
    case Exchange::kBonded:
      return c[Constant::kBondedStart] * kMicro + bytes / (c[Constant::kBusRateDegraded] * kGiga);
    case Exchange::kNccl:
    case Exchange::kTcp:
      break;
  }
  return start_over_nodes(Constant::kNcclStart2, Constant::kNcclStart4, nodes, c) * kMicro +
         slower * bytes / (rate_over_nodes(Constant::kNcclRate2, Constant::kNcclRate4, rate_nodes, c) * kGiga);
}

double tcp_seconds(const Machines& machines, int nodes, double bytes) {
  const double n = nodes;
  // Direct exchange between two; a ring beyond.
  const double steps = nodes == 2 ? 1 : 2 * (n - 1);
  return steps * machines.link_latency + 2 * (n - 1) / n * bytes / (0.9 * machines.link);
}

double nvlink_seconds(const Machines& machines, int ranks, double bytes, const Constants& c) {
  const double n = ranks;
  const double rate = machines.gpu.nvlink > 0 ? c[Constant::kNvlinkUse] * machines.gpu.nvlink : 20e9;  // PCIe
  return (c[Constant::kNvlinkStart] + c[Constant::kNvlinkStartPerDoubling] * std::log2(n)) * kMicro +
         2 * (n - 1) / n * bytes / rate;
}

// What was measured between these nodes. NCCL is measured outside a CUDA graph and used inside one: the published
// difference of the two starts comes on top.
std::optional<double> measured_seconds(const Machines& machines, int nodes, double bytes, const Constants& c) {
  if (!machines.measured || machines.measured->all_reduce.empty() || nodes > machines.measured->nodes) return {};
  const double seconds = curve_seconds(machines.measured->all_reduce, bytes);
  if (machines.kind == HardwareClass::kCpu) return seconds;
  if (machines.kind != HardwareClass::kGb10 || machines.measured->transport != "nccl") return {};
  if (machines.exchange != Exchange::kNccl) return {};
  return seconds + std::max(c[Constant::kNcclStart2] - c[Constant::kNcclTestsStart], 0.0) * kMicro;
}

// Reduce-scatter inside, all-reduce of the parts over the rails, all-gather inside.
double between_nodes(const Machines& machines, const Group& group, double bytes, const Constants& c) {
  if (const auto measured = measured_seconds(machines, group.nodes, bytes, c)) return *measured;
  if (machines.exchange == Exchange::kTcp) return tcp_seconds(machines, group.nodes, bytes);
  if (machines.kind == HardwareClass::kGb10) return gb10_seconds(machines, group.nodes, bytes, c);
  const double n = group.nodes;
  const double rate = kRoceUse * machines.link / machines.oversubscription;
  const double share = static_cast<double>(group.per_node) / machines.gpus_per_node;  // of the rails
  return kServerNodeStart * std::log2(n) + 2 * (n - 1) / n * bytes / (rate * share);
}

}  // namespace

Group group_of(const Machines& machines, int ranks) {
  const int per_node = std::min(ranks, machines.gpus_per_node);
  return {.nodes = (ranks + per_node - 1) / per_node, .per_node = per_node};
}

double all_reduce_seconds(const Machines& machines, const Group& group, double bytes, const Constants& c) {
  double seconds = 0;
  if (group.per_node > 1) seconds += nvlink_seconds(machines, group.per_node, bytes, c);
  if (group.nodes > 1) seconds += between_nodes(machines, group, bytes, c);
  return seconds;
}

double bus_rate(const Machines& machines, const Constants& c) {
  if (machines.exchange == Exchange::kBonded) return c[Constant::kBusRateDegraded] * kGiga;
  if (machines.kind == HardwareClass::kGb10 && machines.exchange != Exchange::kTcp) {
    const double share = machines.topology == spec::Topology::kMesh ? 1 / kMeshStretch : 1;
    return c[Constant::kBusRate] * kGiga * share * std::min(machines.link / machines.facts->nic_limit.value, 1.0);
  }
  return kRoceUse * machines.link / machines.oversubscription;
}

double all_to_all_seconds(const Machines& machines, const Group& group, double bytes, const Constants& c) {
  double seconds = 0;
  const double n = group.ranks();
  const double inside = bytes * (group.per_node - 1) / n;
  const double outside = bytes * (n - group.per_node) / n;
  if (group.per_node > 1 && machines.gpu.nvlink > 0) {
    seconds += c[Constant::kNvlinkStart] * kMicro + inside / (c[Constant::kNvlinkUse] * machines.gpu.nvlink);
  }
  if (group.nodes > 1) {
    seconds +=
        machines.link_latency * std::log2(group.nodes) + 20e-6 + outside * group.per_node / bus_rate(machines, c);
  }
  return seconds;
}

double gather_seconds(const Machines& machines, const Group& group, double bytes, const Constants& c) {
  double seconds = 0;
  if (group.per_node > 1) {
    const double rate = machines.gpu.nvlink > 0 ? c[Constant::kNvlinkUse] * machines.gpu.nvlink : 20e9;
    seconds = bytes * (group.per_node - 1) / group.per_node / rate;
  }
  // Every node's rails carry what the node lacks; its GPUs share that over NVLink at the same time.
  if (group.nodes > 1) {
    seconds = std::max(seconds, bytes * (group.nodes - 1) / group.nodes / bus_rate(machines, c));
  }
  return seconds;
}

}  // namespace yoke::plan
