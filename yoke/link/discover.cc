#include "yoke/link/discover.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/fleet/at_once.h"
#include "yoke/fleet/node.h"

namespace yoke::link {
namespace {

using namespace literals;

// Announcers send ten beacons a second, so this is enough to know who is there; the cabling is then heard in full.
constexpr Seconds kExploring{0.5};
constexpr int kMaxRounds = 16;  // a ring shows one more node to each side with every round

std::optional<Ipv4> ipv4_of(const std::string& address) {
  const auto parsed = parse_ipv4(address);
  return parsed ? std::optional(*parsed) : std::nullopt;
}

// With root where it can be had; without, the node still tells its facts, and why it sends no beacons.
std::shared_ptr<fleet::Node> reach_node(const spec::ClusterNode& place, int index, fleet::SudoPassword* password) {
  try {
    auto node = std::make_shared<fleet::Node>(
        place, index, fleet::NodeOptions{.rights = agent::AgentRights::kRoot, .password = password});
    node->reach();
    return node;
  } catch (const Error& error) {
    // Who gave a password wants it so: a wrong one is reported.
    if (error.code() != ErrorCode::kPermission || (password && password->given())) throw;
    auto node = std::make_shared<fleet::Node>(place, index, fleet::NodeOptions{});
    node->reach();
    return node;
  }
}

// A machine that ssh reached, with yoke's hand there. It stays for all questions of a discovery.
struct Reached {
  spec::ClusterNode machine;
  std::shared_ptr<fleet::Node> node;
};

std::vector<Result<Reached>> reach(std::vector<spec::ClusterNode> machines, int first, const DiscoverOptions& options) {
  if (options.on_step) options.on_step("reaching the machines");
  return fleet::at_once(machines.size(), {}, [&](std::size_t i) {
    spec::ClusterNode& machine = machines[i];
    if (machine.name.empty()) machine.name = machine.address;
    return Reached{machine, reach_node(machine, first + static_cast<int>(i), options.password)};
  });
}

// All are asked at once, when all are there: carrying the program takes as long as it takes, and then all send and
// listen together.
std::vector<Result<FoundNode>> ask(const std::vector<Reached>& reached, const DiscoverOptions& options, Seconds time) {
  if (options.on_step) options.on_step("listening on the cables");
  return fleet::at_once(reached.size(), {}, [&](std::size_t i) {
    const NodeQuestion question{.time = time, .address = ipv4_of(reached[i].machine.address)};
    const Document answer = reached[i].node->ask("discover", to_json(question), time + 30_s);
    return FoundNode{reached[i].machine, from_json<NodeReport>(answer)};
  });
}

// This machine, where it has fast interfaces of its own and is not among those named: the user sits at a node.
std::optional<spec::ClusterNode> this_machine(const std::vector<spec::ClusterNode>& named) {
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (remote::is_this_machine(named[i], static_cast<int>(i))) return std::nullopt;
  }
  const spec::Machine machine = inspect_interfaces(std::nullopt);
  const auto address = management_address(machine);
  const bool has_rdma = std::any_of(machine.rdma_devices.begin(), machine.rdma_devices.end(),
                                    [](const spec::RdmaDevice& device) { return device.interface.has_value(); });
  if (!named.empty() && !has_rdma) return std::nullopt;
  if (spec::fast_interfaces(machine).empty()) return std::nullopt;
  if (!address) {
    throw Error(ErrorCode::kUnavailable, "this machine has no address besides those of its fast interfaces",
                "connect its management port; the nodes reach each other by ssh over it");
  }
  return spec::ClusterNode{.name = "", .address = to_string(*address)};
}

// Whom the nodes heard that is not among them: by identity, the address that the beacon proposes.
std::map<std::string, Beacon> proposals(const std::vector<FoundNode>& nodes) {
  std::map<std::string, Beacon> found;
  for (const FoundNode& node : nodes) {
    for (const HeardBeacon& heard : node.report.heard) {
      const bool known = std::any_of(nodes.begin(), nodes.end(), [&](const FoundNode& other) {
        return other.report.identity == heard.beacon.node;
      });
      if (!known) found.emplace(heard.beacon.node, heard.beacon);
    }
  }
  return found;
}

// Reaches the machine that a beacon proposes; an Error where ssh does not, or it is another than the beacon's sender.
Reached confirm(const Beacon& beacon, int index, const DiscoverOptions& options) {
  if (!beacon.address) throw Error(ErrorCode::kUnavailable, "its beacon proposes no address");
  const spec::ClusterNode machine{.name = beacon.hostname, .address = to_string(*beacon.address), .user = options.user};
  Reached reached = fleet::all_or_throw(reach({machine}, index, options)).front();
  const FoundNode reported = fleet::all_or_throw(ask({reached}, options, {0})).front();
  if (reported.report.identity == beacon.node) return reached;
  throw Error(ErrorCode::kUnavailable, fmt::format("the machine at {} is {}, and sent another beacon", machine.address,
                                                   reported.report.machine.hostname));
}

// Follows what beacons propose; what cannot be confirmed is kept, once. True where somebody is new.
bool follow(const std::map<std::string, Beacon>& proposed, const DiscoverOptions& options,
            std::vector<Reached>& reached, std::map<std::string, spec::UnconfirmedBeacon>& refused) {
  std::vector<Beacon> fresh;
  for (const auto& [identity, beacon] : proposed) {
    if (!refused.contains(identity)) fresh.push_back(beacon);
  }
  std::sort(fresh.begin(), fresh.end(), [](const Beacon& a, const Beacon& b) { return a.hostname < b.hostname; });
  const auto answers = fleet::at_once(fresh.size(), {}, [&](std::size_t i) {
    return confirm(fresh[i], static_cast<int>(reached.size() + i), options);
  });
  bool somebody = false;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (answers[i]) {
      reached.push_back(*answers[i]);
      somebody = true;
    } else {
      const Error& error = answers[i].error();
      refused.emplace(fresh[i].node, spec::UnconfirmedBeacon{fresh[i].hostname, error.message(), error.hint()});
    }
  }
  return somebody;
}

[[noreturn]] void throw_nobody(const std::map<std::string, spec::UnconfirmedBeacon>& refused, const FoundNode& here) {
  for (const auto& [identity, beacon] : refused) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("a machine that calls itself {} is on the cable, but ssh does not confirm it: {}",
                            beacon.hostname, beacon.why),
                beacon.hint.empty() ? "give its address: yoke link discover ADDRESS…" : beacon.hint);
  }
  if (here.report.beacon_problem) {
    throw Error(
        ErrorCode::kPermission, *here.report.beacon_problem,
        "run as root, give sudo's password when it is asked for, or name the machines: yoke link discover ADDRESS…");
  }
  throw Error(ErrorCode::kUnavailable, "no beacon was heard on the fast interfaces",
              "run 'yoke link discover --announce' on the other machines first, or name them: yoke link discover "
              "ADDRESS…");
}

// From nobody named to all that beacons show and ssh confirms.
std::vector<Reached> explore(const DiscoverOptions& options, std::vector<spec::UnconfirmedBeacon>& unconfirmed) {
  const auto here = this_machine({});
  if (!here) {
    throw Error(ErrorCode::kUnsupported, "this machine has no fast interfaces to listen on",
                "run it on one of the nodes, or name them: yoke link discover ADDRESS…");
  }
  std::vector<Reached> reached = fleet::all_or_throw(reach({*here}, 0, options));
  std::map<std::string, spec::UnconfirmedBeacon> refused;
  std::vector<FoundNode> nodes;
  for (int round = 0; round < kMaxRounds; ++round) {
    nodes = fleet::all_or_throw(ask(reached, options, kExploring));
    if (!follow(proposals(nodes), options, reached, refused)) break;
  }
  if (reached.size() == 1) throw_nobody(refused, nodes.front());
  for (const auto& [identity, beacon] : refused) unconfirmed.push_back(beacon);
  return reached;
}

void refuse_odd_addresses(const std::vector<FoundNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto same =
        std::find_if(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const auto& other) { return other.report.identity == nodes[i].report.identity; });
    if (same != nodes.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} and {} are the same machine, {}", same->access.address, nodes[i].access.address,
                              nodes[i].report.machine.hostname),
                  "give one address for each machine");
    }
    const auto address = ipv4_of(nodes[i].access.address);
    for (const spec::NetworkInterface* interface : spec::fast_interfaces(nodes[i].report.machine)) {
      for (const Ipv4Prefix& prefix : interface->addresses) {
        if (!address || prefix.address != *address) continue;
        const auto better = management_address(nodes[i].report.machine);
        throw Error(ErrorCode::kUsage,
                    fmt::format("{} is on the fast interface {} of {}", nodes[i].access.address, interface->name,
                                nodes[i].report.machine.hostname),
                    better ? fmt::format("give its management address: {}", to_string(*better))
                           : "give its address on the management network");
      }
    }
  }
}

// Those named, and this machine in front where it is a node too.
std::vector<Reached> reach_named(const DiscoverOptions& options) {
  std::vector<spec::ClusterNode> machines = options.machines;
  const auto here = options.with_this_machine ? this_machine(machines) : std::nullopt;
  if (here) machines.insert(machines.begin(), *here);
  if (machines.size() < 2) {
    throw Error(ErrorCode::kUsage, "one machine is no cluster",
                "name the others too: yoke link discover ADDRESS ADDRESS…");
  }
  return fleet::all_or_throw(reach(machines, 0, options));
}

// Who hears whom: by beacons where all nodes could send them, else by what addresses tell.
LinkMap map_nodes(DiscoverResult& result) {
  const auto mute = std::find_if(result.nodes.begin(), result.nodes.end(),
                                 [](const FoundNode& node) { return node.report.beacon_problem.has_value(); });
  std::vector<spec::Adjacency> adjacencies = adjacencies_from_beacons(result.nodes);
  if (mute != result.nodes.end()) {
    result.source = spec::AdjacencySource::kAddresses;
    for (const spec::Adjacency& adjacency : adjacencies_from_addresses(result.nodes)) adjacencies.push_back(adjacency);
    if (adjacencies.empty()) {
      throw Error(ErrorCode::kPermission,
                  fmt::format("{} cannot send beacons: {}", mute->access.name, *mute->report.beacon_problem),
                  "log in there as root (--user root), or give sudo's password when it is asked for");
    }
  }
  return infer_topology(result.nodes.size(), std::move(adjacencies),
                        {.switch_seen = switch_name(result.nodes).has_value()});
}

}  // namespace

DiscoverResult discover_cluster(const DiscoverOptions& options) {
  std::vector<spec::UnconfirmedBeacon> unconfirmed;
  const std::vector<Reached> reached = options.machines.empty() ? explore(options, unconfirmed) : reach_named(options);
  DiscoverResult result{.nodes = fleet::all_or_throw(ask(reached, options, options.time)), .discovery = {}};
  refuse_odd_addresses(result.nodes);
  name_nodes(result.nodes);
  LinkMap map = map_nodes(result);
  if (unconfirmed.empty())
    result.unknown_nodes = find_unknown_nodes(result.nodes);  // exploring has named all that stay out
  result.unconfirmed = std::move(unconfirmed);
  result.discovery = adopt_cluster(result.nodes, std::move(map), options.adopt);
  return result;
}

}  // namespace yoke::link
