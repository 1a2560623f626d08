#include "yoke/link/adopt.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/spec/hardware.h"

namespace yoke::link {
namespace {

// From here on node 0 is the first of the map's order.
void reorder(std::vector<FoundNode>& nodes, LinkMap& map) {
  std::vector<FoundNode> ordered;
  std::vector<int> place(nodes.size());
  for (std::size_t i = 0; i < map.order.size(); ++i) {
    place[static_cast<std::size_t>(map.order[i])] = static_cast<int>(i);
    ordered.push_back(nodes[static_cast<std::size_t>(map.order[i])]);
    map.order[i] = static_cast<int>(i);
  }
  nodes = std::move(ordered);
  const auto move = [&](spec::LinkEnd& end) { end.node = place[static_cast<std::size_t>(end.node)]; };
  for (std::vector<spec::LinkSegment>* segments : {&map.segments, &map.loops}) {
    for (spec::LinkSegment& segment : *segments) {
      std::for_each(segment.ends.begin(), segment.ends.end(), move);
      std::sort(segment.ends.begin(), segment.ends.end());
    }
    std::sort(segments->begin(), segments->end(),
              [](const spec::LinkSegment& a, const spec::LinkSegment& b) { return a.ends < b.ends; });
  }
  for (spec::Adjacency& adjacency : map.adjacencies) {
    move(adjacency.by);
    move(adjacency.from);
  }
}

// The catalogue's name for what all nodes are; nothing where they differ or are not known.
std::optional<std::string> hardware_of(const std::vector<FoundNode>& nodes) {
  for (const spec::Hardware& hardware : spec::hardware_catalogue()) {
    const bool fits = std::all_of(nodes.begin(), nodes.end(), [&](const FoundNode& node) {
      const std::vector<spec::Gpu>& gpus = node.report.machine.gpus;
      return static_cast<int>(gpus.size()) == hardware.gpus && gpus.front().name.starts_with(hardware.gpu);
    });
    if (fits) return std::string(hardware.name);
  }
  return std::nullopt;
}

// One subnet for each group of ends, or none where the addresses are not laid out so, or a half of a cable is missing:
// then only the rails tell them.
std::vector<Ipv4Prefix> subnets_of(const LinkMap& map, const EndAddresses& addresses) {
  std::set<Ipv4Prefix> subnets;
  for (const std::vector<spec::LinkEnd>& group : subnet_groups(map)) {
    std::set<Ipv4Prefix> of_group;
    for (const spec::LinkEnd& end : group) {
      const auto found = addresses.find(end);
      if (found == addresses.end()) return {};
      of_group.insert(found->second.network());
    }
    const bool fits = of_group.size() == 1 &&
                      std::none_of(subnets.begin(), subnets.end(),
                                   [&](const Ipv4Prefix& other) { return overlap(other, *of_group.begin()); });
    if (!fits) return {};
    subnets.merge(of_group);
  }
  return {subnets.begin(), subnets.end()};
}

// As many as a cluster file must have, if any.
bool is_complete(const std::vector<Ipv4Prefix>& subnets, const spec::Cluster& cluster) {
  const spec::Hardware* hardware = cluster.hardware ? spec::find_hardware(*cluster.hardware) : nullptr;
  if (!hardware) return true;
  const auto rails = static_cast<std::size_t>(hardware->rails_per_cable);
  return subnets.size() % spec::subnet_count(cluster.fabric->topology, cluster.nodes.size(), rails) == 0;
}

// What the known file leaves out on purpose stays out.
void keep_unused(spec::ClusterNode& node, const spec::Cluster& known) {
  for (const spec::ClusterNode& before : known.nodes) {
    if (before.name != node.name) continue;
    node.unused = before.unused;
    std::erase_if(node.rails, [&](const spec::Rail& rail) {
      return std::any_of(node.unused.begin(), node.unused.end(),
                         [&](const spec::UnusedRail& unused) { return unused.interface == rail.interface; });
    });
  }
}

spec::Cluster write_cluster(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& addresses,
                            const AdoptOptions& options) {
  spec::Cluster cluster{.name = options.known ? options.known->name : "cluster", .hardware = hardware_of(nodes)};
  if (!cluster.hardware && options.known) cluster.hardware = options.known->hardware;
  for (const FoundNode& node : nodes) cluster.nodes.push_back(node.access);
  for (const auto& [end, address] : addresses) {
    cluster.nodes[static_cast<std::size_t>(end.node)].rails.push_back({end.interface, address});
  }
  cluster.fabric = spec::Fabric{.topology = *map.topology};
  if (const auto subnets = subnets_of(map, addresses); is_complete(subnets, cluster)) cluster.fabric->subnets = subnets;
  if (options.known) {
    cluster.lab = options.known->lab;
    cluster.compute = options.known->compute;
    const spec::Fabric fabric = options.known->fabric.value_or(spec::Fabric{});
    cluster.fabric->rail_rate = fabric.rail_rate;
    cluster.fabric->management_rate = fabric.management_rate;
    cluster.fabric->mtu = fabric.mtu;
    for (spec::ClusterNode& node : cluster.nodes) keep_unused(node, *options.known);
    // Two nodes behind a silent switch look like a cable; who wrote the file knew better.
    if (nodes.size() == 2 && fabric.topology == spec::Topology::kSwitch)
      cluster.fabric->topology = spec::Topology::kSwitch;
  }
  return cluster;
}

}  // namespace

const spec::NetworkInterface& interface_at(const std::vector<FoundNode>& nodes, const spec::LinkEnd& end) {
  const spec::NetworkInterface* found =
      spec::find_interface(nodes[static_cast<std::size_t>(end.node)].report.machine, end.interface);
  if (!found) throw Error(ErrorCode::kInternal, fmt::format("there is no {} to look at", end.interface));
  return *found;
}

bool is_link_local(const Ipv4Prefix& prefix) { return prefix.address.value >> 16U == 0xA9FE; }  // 169.254/16

std::vector<std::vector<spec::LinkEnd>> subnet_groups(const LinkMap& map) {
  std::vector<std::vector<spec::LinkEnd>> groups;
  for (const spec::LinkSegment& segment : map.segments) {
    std::vector<std::vector<spec::LinkEnd>> by_place;
    std::map<int, std::size_t> seen;
    for (const spec::LinkEnd& end : segment.ends) {
      const std::size_t place = seen[end.node]++;
      if (place >= by_place.size()) by_place.emplace_back();
      by_place[place].push_back(end);
    }
    groups.insert(groups.end(), by_place.begin(), by_place.end());
  }
  return groups;
}

EndAddresses addresses_there(const std::vector<FoundNode>& nodes, const LinkMap& map) {
  EndAddresses addresses;
  for (const spec::LinkSegment& segment : map.segments) {
    for (const spec::LinkEnd& end : segment.ends) {
      for (const Ipv4Prefix& prefix : interface_at(nodes, end).addresses) {
        const auto [at, is_first] = addresses.try_emplace(end, prefix);
        if (!is_first && is_link_local(at->second) && !is_link_local(prefix)) at->second = prefix;
      }
    }
  }
  return addresses;
}

Discovery adopt_cluster(std::vector<FoundNode>& nodes, LinkMap map, const AdoptOptions& options) {
  reorder(nodes, map);
  Discovery discovery{.map = std::move(map)};
  EndAddresses addresses = addresses_there(nodes, discovery.map);
  discovery.set_up_by = guess_origin(nodes, discovery.map, addresses);
  if (!discovery.map.topology) return discovery;
  discovery.adopted = options.addresses == AddressChoice::kAdopt && !addresses.empty();
  if (!discovery.adopted) addresses = propose_addresses(nodes, discovery.map);
  if (discovery.adopted) {
    for (const auto& [end, address] : complete_addresses(nodes, discovery.map, addresses)) {
      if (addresses.try_emplace(end, address).second) discovery.proposed.push_back(end);
    }
  }
  spec::Cluster cluster = write_cluster(nodes, discovery.map, addresses, options);
  // The same rules as when it is read: a file that yoke refuses must never be written.
  if (const auto valid =
          try_to([&] { return spec::parse_cluster(spec::print_cluster(cluster), "the cluster as found"); });
      !valid) {
    throw Error(ErrorCode::kInvalid, valid.error().message(),
                discovery.adopted ? "'yoke link discover --new-addresses' proposes new addresses instead" : "");
  }
  discovery.cluster = std::move(cluster);
  return discovery;
}

}  // namespace yoke::link
