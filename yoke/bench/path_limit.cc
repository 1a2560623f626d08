#include "yoke/bench/path_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "yoke/job/job.h"
#include "yoke/spec/hardware_facts.h"

namespace yoke::bench {
namespace {

using K = comm::CollectiveKind;
using NodeMatrix = std::vector<std::vector<double>>;  // by node and node

// What one operation sends from rank to rank, and what its bus bandwidth counts; both in parts (a part is the size
// divided by the number of ranks).
struct Traffic {
  NodeMatrix sent;  // by rank and rank
  double counted = 0;
};

Traffic traffic_of(const PathQuestion& question) {
  const auto n = static_cast<std::size_t>(question.ranks);
  const double parts = question.ranks;
  Traffic traffic{NodeMatrix(n, std::vector<double>(n, 0)), parts - 1};
  const auto to_all = [&](double amount) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) traffic.sent[a][b] = a == b ? 0 : amount;
    }
  };
  const auto to_next = [&](double amount) {
    for (std::size_t a = 0; a < n; ++a) traffic.sent[a][(a + 1) % n] = amount;
  };
  switch (question.kind) {
    case K::kAllReduce:
      traffic.counted = 2 * (parts - 1);
      question.transport == rank::Transport::kNccl ? to_next(2 * (parts - 1)) : to_all(2);
      break;
    case K::kAllGather:
    case K::kReduceScatter:
      question.transport == rank::Transport::kNccl ? to_next(parts - 1) : to_all(1);
      break;
    case K::kBroadcast:
    case K::kReduce:
      traffic.counted = parts;
      if (question.transport == rank::Transport::kNccl) {
        to_next(parts);
        break;
      }
      for (std::size_t b = 1; b < n; ++b) {
        (question.kind == K::kBroadcast ? traffic.sent[0][b] : traffic.sent[b][0]) = parts;
      }
      break;
    case K::kGather:
    case K::kScatter:
      for (std::size_t b = 1; b < n; ++b) (question.kind == K::kScatter ? traffic.sent[0][b] : traffic.sent[b][0]) = 1;
      break;
    case K::kSendReceive:
      traffic.counted = parts;
      to_next(parts);
      break;
    default:
      to_all(1);
  }
  return traffic;
}

// By which of its rails a node reaches another: those of subnets that both have, each once.
std::vector<std::size_t> rails_towards(const spec::ClusterNode& node, const spec::ClusterNode& other) {
  std::vector<std::size_t> found;
  std::set<Ipv4Prefix> shared;
  for (std::size_t i = 0; i < node.rails.size(); ++i) {
    const Ipv4Prefix network = node.rails[i].address.network();
    const bool joined =
        std::ranges::any_of(other.rails, [&](const spec::Rail& theirs) { return theirs.address.network() == network; });
    if (joined && shared.insert(network).second) found.push_back(i);
  }
  return found;
}

// How many rails join two nodes.
NodeMatrix rails_between(const spec::Cluster& cluster) {
  const std::size_t n = cluster.nodes.size();
  NodeMatrix rails(n, std::vector<double>(n, 0));
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (a != b) rails[a][b] = static_cast<double>(rails_towards(cluster.nodes[a], cluster.nodes[b]).size());
    }
  }
  return rails;
}

// The nodes on the way, breadth first; of two ways of one length the one that begins with the next node, as the routes
// of a ring are made. Empty: there is none.
std::vector<std::size_t> way_between(const NodeMatrix& rails, std::size_t from, std::size_t to) {
  const std::size_t n = rails.size();
  std::vector<std::optional<std::size_t>> before(n);
  std::deque<std::size_t> open = {from};
  before[from] = from;
  while (!open.empty() && !before[to]) {
    const std::size_t at = open.front();
    open.pop_front();
    for (std::size_t step = 1; step < n; ++step) {
      const std::size_t next = (at + step) % n;
      if (rails[at][next] <= 0 || before[next]) continue;
      before[next] = at;
      open.push_back(next);
    }
  }
  if (!before[to]) return {};
  std::vector<std::size_t> way = {to};
  while (way.back() != from) way.push_back(*before[way.back()]);
  std::reverse(way.begin(), way.end());
  return way;
}

std::vector<std::size_t> nodes_of_ranks(const spec::Cluster& cluster, int ranks) {
  std::vector<std::size_t> nodes;
  const std::vector<job::JobNode> placed = job::spread_ranks(cluster.nodes, ranks);
  for (std::size_t node = 0; node < placed.size(); ++node) {
    nodes.insert(nodes.end(), static_cast<std::size_t>(placed[node].ranks), node);
  }
  return nodes;
}

struct Load {
  NodeMatrix on_way;  // by neighbour and neighbour
  bool is_forwarded = false;
};

std::optional<Load> load_of(const NodeMatrix& rails, const Traffic& traffic, const std::vector<std::size_t>& node_of) {
  const std::size_t n = rails.size();
  Load load{NodeMatrix(n, std::vector<double>(n, 0))};
  for (std::size_t a = 0; a < node_of.size(); ++a) {
    for (std::size_t b = 0; b < node_of.size(); ++b) {
      if (traffic.sent[a][b] <= 0 || node_of[a] == node_of[b]) continue;
      const std::vector<std::size_t> way = way_between(rails, node_of[a], node_of[b]);
      if (way.empty()) return std::nullopt;
      load.is_forwarded |= way.size() > 2;
      for (std::size_t i = 0; i + 1 < way.size(); ++i) {
        load.on_way[way[i]][way[i + 1]] += traffic.sent[a][b];
      }
    }
  }
  return load;
}

// What the busiest of a node's NIC links carries one way. Rails share them in turn: of a Spark's two PCIe links one has
// the first rail of each port, in a mesh of three rails the first and the third.
double busiest_nic_link(const spec::Cluster& cluster, std::size_t node, const NodeMatrix& carried, double nic_links) {
  std::vector<double> links(cluster.nodes[node].rails.size(), 0);
  for (std::size_t other = 0; other < cluster.nodes.size(); ++other) {
    if (carried[node][other] <= 0) continue;
    const std::vector<std::size_t> rails = rails_towards(cluster.nodes[node], cluster.nodes[other]);
    for (const std::size_t rail : rails) {
      const auto link =
          static_cast<std::size_t>(std::fmod(static_cast<double>(rail), std::max(std::floor(nic_links), 1.0)));
      links[link] += carried[node][other] / static_cast<double>(rails.size());
    }
  }
  return *std::max_element(links.begin(), links.end());
}

NodeMatrix transposed(const NodeMatrix& matrix) {
  NodeMatrix turned = matrix;
  for (std::size_t a = 0; a < matrix.size(); ++a) {
    for (std::size_t b = 0; b < matrix.size(); ++b) turned[b][a] = matrix[a][b];
  }
  return turned;
}

// The time of one operation in which a rail carries one part at a time.
double time_of(const Load& load, const NodeMatrix& rails, const spec::Cluster& cluster, double nic_links) {
  double time = 0;
  const NodeMatrix out = load.on_way, in = transposed(load.on_way);
  for (std::size_t a = 0; a < rails.size(); ++a) {
    for (std::size_t b = 0; b < rails.size(); ++b) {
      if (load.on_way[a][b] > 0) time = std::max(time, load.on_way[a][b] / rails[a][b]);
    }
    for (const NodeMatrix& way : {out, in}) time = std::max(time, busiest_nic_link(cluster, a, way, nic_links));
  }
  return time;
}

struct RailRate {
  BitsPerSecond rate;
  std::string source;
};

std::optional<RailRate> rail_rate(const spec::Cluster& cluster, const spec::Hardware* hardware) {
  if (cluster.fabric && cluster.fabric->rail_rate) return RailRate{*cluster.fabric->rail_rate, "the cluster file"};
  // What a lab is not shaped to, it carries as fast as this machine copies.
  if (!hardware || cluster.lab) return std::nullopt;
  return RailRate{hardware->rail_rate, "the catalogue"};
}

std::optional<LinkLimit> management_limit(const spec::Cluster& cluster, const spec::Hardware* hardware) {
  const bool given = cluster.fabric && cluster.fabric->management_rate;
  if (!given && (!hardware || cluster.lab)) return std::nullopt;
  return LinkLimit{.rail_rate = given ? *cluster.fabric->management_rate : hardware->management_rate,
                   .rails = 1,
                   .source = given ? "the cluster file" : "the catalogue",
                   .path = "the management network"};
}

// Of all ranks on one node: only NCCL uses NVLink, and data sheets give both directions together.
std::optional<LinkLimit> nvlink_limit(const spec::Cluster& cluster, const spec::Hardware* hardware,
                                      const PathQuestion& question) {
  const spec::HardwareFacts* facts = hardware && !cluster.lab ? spec::find_hardware_facts(hardware->name) : nullptr;
  if (!facts || facts->nvlink.value <= 0 || question.ranks < 2) return std::nullopt;
  if (question.transport != rank::Transport::kNccl) return std::nullopt;
  LinkLimit limit{.rail_rate = BitsPerSecond{facts->nvlink.value / 2 * 8},
                  .rails = 1,
                  .source = "the catalogue",
                  .path = "NVLink inside the node, one way"};
  if (question.kind == K::kAllReduce) limit.excess = 2;
  return limit;
}

}  // namespace

std::optional<LinkLimit> limit_of(const spec::Cluster& cluster, const PathQuestion& question) {
  const spec::Hardware* hardware = cluster.hardware ? spec::find_hardware(*cluster.hardware) : nullptr;
  const std::vector<std::size_t> node_of = nodes_of_ranks(cluster, question.ranks);
  if (node_of.empty()) return std::nullopt;
  if (node_of.front() == node_of.back()) return nvlink_limit(cluster, hardware, question);
  const bool listed =
      std::ranges::none_of(cluster.nodes, [](const spec::ClusterNode& node) { return node.rails.empty(); });
  if (!listed) return management_limit(cluster, hardware);
  const auto rate = rail_rate(cluster, hardware);
  if (!rate) return std::nullopt;
  const NodeMatrix rails = rails_between(cluster);
  const Traffic traffic = traffic_of(question);
  const auto load = load_of(rails, traffic, node_of);
  if (!load) return std::nullopt;
  const double nic_max = hardware ? spec::rails_of_nic(*hardware) : std::numeric_limits<double>::infinity();
  double widest = 0;
  bool nic_decides = false;
  for (const spec::ClusterNode& node : cluster.nodes) {
    const auto own = static_cast<double>(node.rails.size());
    nic_decides |= own > nic_max;
    widest = std::max(widest, std::min(own, nic_max));
  }
  const double time = time_of(*load, rails, cluster, nic_max);
  if (time <= 0) return std::nullopt;
  LinkLimit limit{.rail_rate = rate->rate, .rails = static_cast<int>(widest), .source = rate->source};
  limit.share = traffic.counted / time / limit.rails;
  const bool tree = question.transport == rank::Transport::kNccl && question.kind == K::kAllReduce &&
                    node_of.back() - node_of.front() == 1;
  if (tree) limit.excess = traffic.counted / question.ranks;
  if (nic_decides)
    limit.path = fmt::format("what each node's NIC carries of its {} rails", cluster.nodes[0].rails.size());
  if (load->is_forwarded)
    limit.path += std::string(limit.path.empty() ? "" : ", ") + "part of it forwarded by neighbours";
  return limit;
}

}  // namespace yoke::bench
