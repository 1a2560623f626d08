// The order of NCCL's rings and trees: each enters a machine once, since the network is slower than what joins the GPUs
// inside of it.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

using MachineOfRank = std::map<int, std::string>;

// Empty where the log does not tell: where a rank speaks on two machines it is of several communicators, which number
// their ranks alike; where NCCL counts fewer nodes than there are machines, NVLink joins machines.
MachineOfRank machines_of_ranks(const spec::NcclLog& log) {
  MachineOfRank machines;
  if (log.hosts.contains("an unnamed host")) return {};
  for (const auto& [name, host] : log.hosts) {
    for (const int rank : host.ranks) {
      if (!machines.emplace(rank, name).second) return {};
    }
  }
  return log.nodes && *log.nodes < static_cast<int>(log.hosts.size()) ? MachineOfRank{} : machines;
}

struct Crossings {
  std::string kind;  // "ring 0"
  int count = 0, needed = 0;
  std::string line;
  bool are_too_many() const { return count > needed; }
};

// Nothing where a rank's machine is not known.
std::optional<Crossings> ring_crossings(int channel, const spec::NcclRing& ring, const MachineOfRank& machines) {
  std::set<std::string> entered;
  Crossings crossings{.kind = fmt::format("ring {}", channel), .line = ring.line};
  for (std::size_t i = 0; i < ring.ranks.size(); ++i) {
    const auto here = machines.find(ring.ranks[i]);
    const auto next = machines.find(ring.ranks[(i + 1) % ring.ranks.size()]);
    if (here == machines.end() || next == machines.end()) return std::nullopt;
    entered.insert(here->second);
    crossings.count += here->second != next->second ? 1 : 0;
  }
  crossings.needed = entered.size() > 1 ? static_cast<int>(entered.size()) : 0;
  return crossings;
}

// What is not in the log can only add crossings.
std::vector<Crossings> tree_crossings(const spec::NcclLog& log, const MachineOfRank& machines) {
  std::map<int, Crossings> channels;
  for (const auto& [place, parents] : log.tree_parents) {
    const auto& [channel, rank] = place;
    if (parents.size() != 1) return {};
    const auto here = machines.find(rank);
    const auto above = machines.find(*parents.begin());
    if (here == machines.end() || above == machines.end() || here->second == above->second) continue;
    Crossings& crossings = channels[channel];
    ++crossings.count;
    if (const auto line = log.tree_lines.find(rank); crossings.line.empty() && line != log.tree_lines.end())
      crossings.line = line->second;
  }
  std::set<std::string> all;
  for (const auto& [rank, machine] : machines) all.insert(machine);
  std::vector<Crossings> list;
  for (auto& [channel, crossings] : channels) {
    crossings.kind = fmt::format("tree {}", channel);
    crossings.needed = static_cast<int>(all.size()) - 1;
    list.push_back(std::move(crossings));
  }
  return list;
}

std::optional<Crossings> worst_order(const spec::NcclLog& log) {
  const MachineOfRank machines = machines_of_ranks(log);
  std::vector<Crossings> all = tree_crossings(log, machines);
  for (const auto& [channel, ring] : log.rings) {
    if (log.ranks && static_cast<std::size_t>(*log.ranks) != ring.ranks.size()) continue;
    if (auto crossings = ring_crossings(channel, ring, machines)) all.insert(all.begin(), *std::move(crossings));
  }
  const auto worst = std::ranges::max_element(all, {}, [](const Crossings& one) { return one.count - one.needed; });
  return worst != all.end() && worst->are_too_many() ? std::optional(*worst) : std::nullopt;
}

}  // namespace

AdviceList find_nccl_ring_order(const ClusterView& view) {
  const auto worst = worst_order(*view.facts.log);
  if (!worst) return {};
  return {{.what = fmt::format("NCCL's {} goes between machines {} times, and {} would do", worst->kind, worst->count,
                               worst->needed),
           .evidence = worst->line,
           .consequence = fmt::format("each byte takes the network {:.1f} times as often as it must",
                                      static_cast<double>(worst->count) / worst->needed),
           .fix = "unset NCCL_RINGS, NCCL_GRAPH_FILE and NCCL_TOPO_FILE; all ranks of a machine must have one host "
                  "name and one boot_id, or one NCCL_HOSTID"}};
}

}  // namespace yoke::check
