#include "yoke/link/adopt.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/spec/hardware.h"

namespace yoke {
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
  const auto move = [&](LinkEnd& end) { end.node = place[static_cast<std::size_t>(end.node)]; };
  for (std::vector<LinkSegment>* segments : {&map.segments, &map.loops}) {
    for (LinkSegment& segment : *segments) {
      std::for_each(segment.ends.begin(), segment.ends.end(), move);
      std::sort(segment.ends.begin(), segment.ends.end());
    }
    std::sort(segments->begin(), segments->end(),
              [](const LinkSegment& a, const LinkSegment& b) { return a.ends < b.ends; });
  }
  for (Sighting& sighting : map.sightings) {
    move(sighting.by);
    move(sighting.from);
  }
}

// The catalogue's name for what all nodes are; nothing where they differ or are not known.
std::optional<std::string> hardware_of(const std::vector<FoundNode>& nodes) {
  for (const Hardware& hardware : hardware_catalogue()) {
    const bool fits = std::all_of(nodes.begin(), nodes.end(), [&](const FoundNode& node) {
      const std::vector<Gpu>& gpus = node.report.machine.gpus;
      return static_cast<int>(gpus.size()) == hardware.gpus && gpus.front().name.starts_with(hardware.gpu);
    });
    if (fits) return std::string(hardware.name);
  }
  return std::nullopt;
}

// One subnet for each group of ends, or none where the addresses are not laid out so, or a half of a cable is missing:
// then only the halves tell them.
std::vector<Ipv4Prefix> subnets_of(const LinkMap& map, const EndAddresses& addresses) {
  std::set<Ipv4Prefix> subnets;
  for (const std::vector<LinkEnd>& group : subnet_groups(map)) {
    std::set<Ipv4Prefix> of_group;
    for (const LinkEnd& end : group) {
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
bool is_whole(const std::vector<Ipv4Prefix>& subnets, const Cluster& cluster) {
  const Hardware* hardware = cluster.hardware ? find_hardware(*cluster.hardware) : nullptr;
  const std::size_t cables = cluster.fabric->topology == Topology::kRing ? cluster.nodes.size() : 1;
  return !hardware || subnets.size() % (cables * static_cast<std::size_t>(hardware->halves_per_cable)) == 0;
}

int mtu_of(const std::vector<FoundNode>& nodes, const EndAddresses& addresses) {
  int least = 0;
  for (const auto& [end, address] : addresses) {
    const int mtu = interface_at(nodes, end).mtu;
    least = least == 0 ? mtu : std::min(least, mtu);
  }
  return least;
}

Cluster write_cluster(const std::vector<FoundNode>& nodes, const LinkMap& map, const EndAddresses& addresses,
                      const AdoptOptions& options) {
  Cluster cluster{.name = options.known ? options.known->name : "cluster", .hardware = hardware_of(nodes)};
  if (!cluster.hardware && options.known) cluster.hardware = options.known->hardware;
  for (const FoundNode& node : nodes) cluster.nodes.push_back(node.access);
  for (const auto& [end, address] : addresses) {
    cluster.nodes[static_cast<std::size_t>(end.node)].halves.push_back({end.interface, address});
  }
  cluster.fabric = Fabric{.topology = *map.topology};
  if (const auto subnets = subnets_of(map, addresses); is_whole(subnets, cluster)) cluster.fabric->subnets = subnets;
  if (options.known) {
    cluster.lab = options.known->lab;
    cluster.compute = options.known->compute;
    const Fabric fabric = options.known->fabric.value_or(Fabric{});
    cluster.fabric->half_rate = fabric.half_rate;
    cluster.fabric->management_rate = fabric.management_rate;
    // Two nodes behind a silent switch look like a cable; who wrote the file knew better.
    if (nodes.size() == 2 && fabric.topology == Topology::kSwitch) cluster.fabric->topology = Topology::kSwitch;
  }
  return cluster;
}

}  // namespace

const NetworkInterface& interface_at(const std::vector<FoundNode>& nodes, const LinkEnd& end) {
  const NetworkInterface* found =
      find_interface(nodes[static_cast<std::size_t>(end.node)].report.machine, end.interface);
  if (!found) throw Error(ErrorCode::kInternal, fmt::format("there is no {} to look at", end.interface));
  return *found;
}

bool is_link_local(const Ipv4Prefix& prefix) { return prefix.address.value >> 16U == 0xA9FE; }  // 169.254/16

std::vector<std::vector<LinkEnd>> subnet_groups(const LinkMap& map) {
  std::vector<std::vector<LinkEnd>> groups;
  for (const LinkSegment& segment : map.segments) {
    std::vector<std::vector<LinkEnd>> by_place;
    std::map<int, std::size_t> seen;
    for (const LinkEnd& end : segment.ends) {
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
  for (const LinkSegment& segment : map.segments) {
    for (const LinkEnd& end : segment.ends) {
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
  Cluster cluster = write_cluster(nodes, discovery.map, addresses, options);
  if (discovery.adopted) cluster.fabric->mtu = mtu_of(nodes, addresses);
  // The same rules as when it is read: a file that yoke refuses must never be written.
  if (const auto valid = try_to([&] { return parse_cluster(print_cluster(cluster), "the cluster as found"); });
      !valid) {
    throw Error(ErrorCode::kInvalid, valid.error().message(),
                discovery.adopted ? "'yoke link discover --readdress' proposes new addresses instead" : "");
  }
  discovery.cluster = std::move(cluster);
  return discovery;
}

}  // namespace yoke
