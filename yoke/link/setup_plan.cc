#include "yoke/link/setup_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>

#include "yoke/base/error.h"
#include "yoke/link/environment_file.h"
#include "yoke/link/pairs.h"

namespace yoke::link {
namespace {

int mtu_of(const spec::Cluster& cluster) { return cluster.fabric ? cluster.fabric->mtu : spec::Fabric{}.mtu; }
spec::Topology topology_of(const spec::Cluster& cluster) {
  return cluster.fabric ? cluster.fabric->topology : spec::Fabric{}.topology;
}

// A pair as one of its nodes sees it.
struct Neighbour {
  std::size_t node;
  std::vector<PairRail> rails;  // a: ours, b: theirs
};

std::vector<std::vector<Neighbour>> neighbours_of(const spec::Cluster& cluster) {
  std::vector<std::vector<Neighbour>> all(cluster.nodes.size());
  for (const NodePair& pair : pairs_of(cluster, {})) {
    const auto a = static_cast<std::size_t>(pair.a);
    const auto b = static_cast<std::size_t>(pair.b);
    all[a].push_back({b, pair.rails});
    Neighbour back{a, pair.rails};
    for (PairRail& rail : back.rails) std::swap(rail.a, rail.b);
    all[b].push_back(std::move(back));
  }
  // Of two ways of one length the one that begins with the next node is taken, on all nodes alike.
  for (std::size_t node = 0; node < all.size(); ++node) {
    const auto distance = [&](const Neighbour& n) { return (n.node + all.size() - node) % all.size(); };
    std::sort(all[node].begin(), all[node].end(),
              [&](const Neighbour& a, const Neighbour& b) { return distance(a) < distance(b); });
  }
  return all;
}

// The neighbour by which each other node is nearest; breadth first.
std::vector<const Neighbour*> first_hops(const std::vector<std::vector<Neighbour>>& all, std::size_t from) {
  std::vector<const Neighbour*> first(all.size(), nullptr);
  std::deque<std::size_t> waiting;
  for (const Neighbour& neighbour : all[from]) {
    first[neighbour.node] = &neighbour;
    waiting.push_back(neighbour.node);
  }
  while (!waiting.empty()) {
    const std::size_t node = waiting.front();
    waiting.pop_front();
    for (const Neighbour& next : all[node]) {
      if (next.node == from || first[next.node]) continue;
      first[next.node] = first[node];
      waiting.push_back(next.node);
    }
  }
  return first;
}

// The environment file pins NCCL to the rails of the cluster file: with one of a cable's two it would run at half the
// rate.
void check_rails(const spec::ClusterNode& node, const SetupFacts& facts) {
  for (const std::string& rail : facts.rails) {
    const auto names_it = [&](const auto& one) { return one.interface == rail; };
    if (std::any_of(node.rails.begin(), node.rails.end(), names_it)) continue;
    if (std::any_of(node.unused.begin(), node.unused.end(), names_it)) continue;
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} of {} has a cable, but the cluster file does not list it: setup would pin NCCL to the "
                            "other rails",
                            rail, node.name),
                fmt::format("'yoke link discover -o cluster.yaml --force' adds it; to leave it out on purpose write "
                            "unused: [{{ interface: {}, reason: … }}] at {}",
                            rail, node.name));
  }
}

void check_node(const spec::Cluster& cluster, const spec::ClusterNode& node, const SetupFacts& facts) {
  check_rails(node, facts);
  for (const spec::Rail& rail : node.rails) {
    const std::string kept = to_string(rail.address.address);
    const bool is_management = rail.interface == facts.management_interface && kept != node.address;
    const bool is_ssh = rail.interface == facts.ssh_interface && kept != facts.ssh_address;
    if (is_management || is_ssh) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{} is where ssh reaches {} ({}): it cannot be a rail", rail.interface, node.name,
                              is_management ? node.address : facts.ssh_address),
                  "name the fast interface in the cluster file, and for ssh an address that it does not have");
    }
  }
  const std::vector<Ipv4Prefix> subnets = cluster.fabric ? cluster.fabric->subnets : std::vector<Ipv4Prefix>{};
  for (const spec::Rail& rail : node.rails) {
    const bool fits = subnets.empty() || std::any_of(subnets.begin(), subnets.end(), [&](const Ipv4Prefix& subnet) {
                        return subnet == rail.address.network();
                      });
    if (!fits) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{} of {} on {} is in none of fabric.subnets", to_string(rail.address), rail.interface,
                              node.name),
                  "correct the address or the subnets in the cluster file");
    }
  }
}

std::vector<std::pair<std::string, std::string>> settings_of(const spec::Cluster& cluster,
                                                             const spec::ClusterNode& node) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const spec::Rail& rail : node.rails) {
    // A dot in an interface's name is a slash in a setting's.
    std::string name = rail.interface;
    std::replace(name.begin(), name.end(), '.', '/');
    settings.emplace_back(fmt::format("net.ipv6.conf.{}.disable_ipv6", name), "1");
  }
  if (topology_of(cluster) == spec::Topology::kRing) {
    settings.emplace_back("net.ipv4.conf.all.rp_filter", "0");
    if (cluster.nodes.size() > 3) settings.emplace_back("net.ipv4.ip_forward", "1");
  }
  return settings;
}

std::string settings_text(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string text = "# Written by 'yoke link setup'; 'yoke link undo' takes it back.\n";
  for (const auto& [name, value] : settings) text += fmt::format("{} = {}\n", name, value);
  return text;
}

// As known_hosts names a host: a port other than 22 goes with each name.
std::string host_names(const spec::ClusterNode& node) {
  std::vector<std::string> names = {node.name};
  if (node.address != node.name) names.push_back(node.address);
  for (const spec::Rail& rail : node.rails) names.push_back(to_string(rail.address.address));
  if (node.port != 22) {
    for (std::string& name : names) name = fmt::format("[{}]:{}", name, node.port);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

constexpr const char* kLimitsText =
    "# Written by 'yoke link setup'; 'yoke link undo' takes it back. Counts from the next login.\n"
    "*    -  memlock  unlimited\n"
    "root -  memlock  unlimited\n";

Step file_step(std::string path, std::string content, std::string description) {
  return {.kind = StepKind::kFile,
          .description = std::move(description),
          .path = std::move(path),
          .content = std::move(content)};
}

// Addresses and routes, first as what lasts, then as what is.
std::vector<Step> network_steps(const spec::Cluster& cluster, const spec::ClusterNode& node,
                                const std::vector<FarRoute>& routes, const SetupFacts& facts) {
  const int mtu = mtu_of(cluster);
  std::vector<NetplanInterface> interfaces;
  std::vector<Step> steps;
  for (const spec::Rail& rail : node.rails) {
    interfaces.push_back({.name = rail.interface, .address = rail.address});
    for (const FarRoute& route : routes) {
      if (route.interface == rail.interface) interfaces.back().routes.push_back({route.to, route.via});
    }
    steps.push_back({.kind = StepKind::kInterface,
                     .description = fmt::format("{} and MTU {} on {}", to_string(rail.address), mtu, rail.interface),
                     .interface = rail.interface,
                     .address = to_string(rail.address),
                     .mtu = mtu});
  }
  for (const FarRoute& route : routes) {
    steps.push_back({.kind = StepKind::kRoute,
                     .description = fmt::format("route to {} by {}", route.to, route.interface),
                     .interface = route.interface,
                     .address = route.to,
                     .via = route.via});
  }
  // Rendered also where it is not written: it refuses what makes no sense.
  const std::string netplan = render_netplan(interfaces, mtu);
  if (facts.netplan) {
    steps.insert(steps.begin(), {.kind = StepKind::kNetplan,
                                 .description = "netplan file (keeps it after a reboot)",
                                 .path = kNetplanFile,
                                 .content = netplan,
                                 .mode = 0600});
  }
  return steps;
}

}  // namespace

std::vector<FarRoute> far_routes(const spec::Cluster& cluster, std::size_t node) {
  std::vector<FarRoute> routes;
  if (!spec::is_ring_or_mesh(topology_of(cluster))) return routes;
  const auto all = neighbours_of(cluster);
  const auto first = first_hops(all, node);
  const auto shares_subnet = [&](const std::string& address) {
    const Ipv4 target = value_or_throw(parse_ipv4(address));
    const std::vector<spec::Rail>& own = cluster.nodes[node].rails;
    return std::any_of(own.begin(), own.end(), [&](const spec::Rail& rail) { return rail.address.contains(target); });
  };
  for (std::size_t other = 0; other < all.size(); ++other) {
    if (other == node || !first[other]) continue;
    for (const Neighbour& cable : all[other]) {
      for (std::size_t i = 0; i < cable.rails.size(); ++i) {
        const std::string& target = cable.rails[i].a.address;
        if (shares_subnet(target)) continue;
        const PairRail& way = first[other]->rails[i % first[other]->rails.size()];
        routes.push_back({target + "/32", way.b.address, way.a.interface});
      }
    }
  }
  return routes;
}

std::vector<Step> node_steps(const spec::Cluster& cluster, std::size_t index, const SetupFacts& facts,
                             ShellPins shell) {
  const spec::ClusterNode& node = cluster.nodes[index];
  check_node(cluster, node, facts);
  std::vector<Step> steps = network_steps(cluster, node, far_routes(cluster, index), facts);
  // After the interfaces: what IPv6 addresses they had is in their records, and comes back once this is undone.
  const auto settings = settings_of(cluster, node);
  steps.push_back(file_step(kSettingsFile, settings_text(settings), "kernel settings (kept after a reboot)"));
  for (const auto& [name, value] : settings) {
    steps.push_back({.kind = StepKind::kSetting,
                     .description = fmt::format("{} = {}", name, value),
                     .path = name,
                     .content = value});
  }
  steps.push_back(file_step(kLimitsFile, kLimitsText, "unlimited locked memory, which RDMA needs"));
  steps.push_back(file_step(kEnvironmentFile, render_environment(cluster, node, facts),
                            "environment file with the pins for engines"));
  if (shell == ShellPins::kLogins) {
    steps.push_back(file_step(kProfileFile, render_profile(cluster, node, facts), "the pins in every login shell"));
    steps.push_back(file_step(kUserServicesFile, render_user_services(cluster, node, facts),
                              "the pins in every service of a user"));
  }
  steps.push_back({.kind = StepKind::kKeyPair,
                   .description = "ssh key pair",
                   .path = "~/.ssh/id_ed25519",
                   .content = "yoke@" + node.name,
                   .mode = 0600});
  return steps;
}

std::vector<Step> ssh_steps(const spec::Cluster& cluster, std::size_t index, const std::vector<SetupFacts>& facts) {
  Step logins{.kind = StepKind::kLines,
              .description = "the other nodes may log in (their public keys)",
              .path = "~/.ssh/authorized_keys",
              .mode = 0600};
  Step hosts{.kind = StepKind::kLines,
             .description = "the other nodes' host keys are known",
             .path = "~/.ssh/known_hosts",
             .mode = 0600};
  for (std::size_t other = 0; other < cluster.nodes.size(); ++other) {
    if (other == index) continue;
    logins.lines.push_back(facts[other].public_key.value_or(kKeyToCome));
    for (const std::string& key : facts[other].host_keys) {
      hosts.lines.push_back(host_names(cluster.nodes[other]) + " " + key);
    }
  }
  return {logins, hosts};
}

}  // namespace yoke::link
