#include "yoke/check/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/spec/address_holder.h"
#include "yoke/spec/fabric.h"

namespace yoke::check {
namespace {

// The wanted address where the interface has it, else one of the wanted network, else the first that is no makeshift.
std::optional<Ipv4Prefix> address_of(const spec::NetworkInterface& interface, const std::optional<Ipv4Prefix>& wanted) {
  const auto& all = interface.addresses;
  if (all.empty()) return std::nullopt;
  if (wanted) {
    for (const Ipv4Prefix& address : all) {
      if (address.address == wanted->address) return address;
    }
    for (const Ipv4Prefix& address : all) {
      if (wanted->contains(address.address)) return address;
    }
  }
  const auto proper =
      std::find_if(all.begin(), all.end(), [](const auto& a) { return !spec::is_link_local(a.address); });
  return proper == all.end() ? all.front() : *proper;
}

// A bond's member has the bond's address, but not one that the cluster file gives to another rail. Where the file names
// this interface, what is tried is bound to it, and does not pass where a VLAN has the address: the file should name
// that.
const spec::NetworkInterface* holder_of(const RailEnd& end) {
  const auto gids = end.rdma ? end.rdma->gids : std::vector<spec::GidEntry>{};
  const spec::NetworkInterface& holder = spec::address_holder(*end.node->machine, *end.interface, gids);
  if (!end.wanted) return &holder;
  const auto held = address_of(holder, end.wanted);
  return holder.name == end.bond && held && held->address == end.wanted->address ? &holder : end.interface;
}

void fill_from_machine(RailEnd& end) {
  const spec::Machine& machine = *end.node->machine;
  end.interface = spec::find_interface(machine, end.name);
  if (!end.interface) return;
  end.port = end.interface->port.value_or(0);
  if (end.interface->rail) end.rail = *end.interface->rail;
  if (end.interface->rdma_device) end.rdma = spec::find_rdma_device(machine, *end.interface->rdma_device);
  const spec::NetworkInterface* master =
      end.interface->master ? spec::find_interface(machine, *end.interface->master) : nullptr;
  if (master && master->kind == spec::InterfaceKind::kBond) end.bond = master->name;
  end.holder = holder_of(end);
  end.address = address_of(*end.holder, end.wanted);
}

// Without the cluster file's word: ports of the fabric with a link on any rail. One without cable is nobody's fault.
std::vector<RailEnd> cabled_rails(const spec::SurveyedNode& node) {
  std::vector<RailEnd> ends;
  std::set<int> cabled;
  for (const spec::NetworkInterface* interface : spec::fabric_interfaces(*node.machine)) {
    RailEnd end{.node = &node, .name = interface->name};
    fill_from_machine(end);
    if (end.is_up()) cabled.insert(end.port);
    ends.push_back(std::move(end));
  }
  std::erase_if(ends, [&](const RailEnd& end) { return !cabled.contains(end.port); });
  return ends;
}

bool is_in_a_segment(const spec::Cabling& cabling, int node, const std::string& interface) {
  return std::ranges::any_of(cabling.segments, [&](const spec::LinkSegment& segment) {
    return std::ranges::any_of(
        segment.ends, [&](const spec::LinkEnd& end) { return end.node == node && end.interface == interface; });
  });
}

// A port of which one rail joins nodes has a good cable: all of its rails are in use.
std::vector<RailEnd> heard_rails(const spec::Survey& facts, const spec::SurveyedNode& node) {
  const int place = static_cast<int>(&node - facts.nodes.data());
  std::vector<RailEnd> ends;
  std::set<int> joined;
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(*node.machine)) {
    RailEnd end{.node = &node, .name = interface->name};
    fill_from_machine(end);
    end.is_heard = is_in_a_segment(*facts.cabling, place, end.name);
    if (end.is_heard) joined.insert(end.port);
    ends.push_back(std::move(end));
  }
  const bool split = spec::has_split_ports(*facts.cabling);
  std::erase_if(
      ends, [&](const RailEnd& end) { return !joined.contains(end.port) || (split && !end.is_heard && !end.is_up()); });
  return ends;
}

std::vector<RailEnd> named_rails(const spec::SurveyedNode& node, const spec::ClusterNode& place) {
  std::vector<RailEnd> ends;
  for (std::size_t i = 0; i < place.rails.size(); ++i) {
    if (place.rails[i].interface == "lo") continue;  // a plain lab: every address of 127/8 is there, and no rail
    RailEnd end{.node = &node,
                .name = place.rails[i].interface,
                .rail = std::string(1, static_cast<char>('A' + i % 26)),
                .wanted = place.rails[i].address};
    fill_from_machine(end);
    ends.push_back(std::move(end));
  }
  return ends;
}

const spec::ClusterNode* find_place(const spec::Survey& facts, const std::string& name) {
  if (!facts.cluster) return nullptr;
  for (const spec::ClusterNode& place : facts.cluster->nodes) {
    if (place.name == name) return &place;
  }
  return nullptr;
}

bool is_marked_unused(const spec::ClusterNode& place, const std::string& interface) {
  return std::ranges::any_of(place.unused, [&](const spec::UnusedRail& rail) { return rail.interface == interface; });
}

// The file may name the rail itself, its bond, or a VLAN over it.
bool is_listed(const spec::ClusterNode& place, const RailEnd& end) {
  return std::ranges::any_of(place.rails, [&](const spec::Rail& rail) {
    return rail.interface == end.name || rail.interface == end.bond || rail.interface == end.holder->name;
  });
}

// Where ports are split, a half without a link is one without a cable.
std::vector<RailEnd> unlisted_rails(const ClusterView& view, const spec::SurveyedNode& node,
                                    const spec::ClusterNode& place) {
  const bool on_loopback = !place.rails.empty() && place.rails.front().interface == "lo";
  std::vector<RailEnd> ends = on_loopback ? std::vector<RailEnd>{} : cabled_rails(node);
  std::erase_if(ends, [&](const RailEnd& end) {
    return is_listed(place, end) || is_marked_unused(place, end.name) || (view.has_split_ports() && !end.is_up());
  });
  return ends;
}

void join(std::vector<RailEnd>& rails, std::size_t a, std::size_t b) {
  rails[a].peers.push_back(b);
  rails[b].peers.push_back(a);
}

// Two machines with one cable each: its rails belong together whatever their addresses say, which may be the fault.
bool join_by_cable(const spec::Survey& facts, std::vector<RailEnd>& rails) {
  if (facts.nodes.size() != 2) return false;
  std::vector<std::set<int>> ports(2);
  for (const RailEnd& end : rails) ports[end.node == &facts.nodes[1]].insert(end.port);
  if (ports[0].size() != 1 || ports[1].size() != 1) return false;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    for (std::size_t j = i + 1; j < rails.size(); ++j) {
      if (rails[i].node != rails[j].node && rails[i].rail == rails[j].rail) join(rails, i, j);
    }
  }
  return true;
}

// Where several ends of a node are in one segment, as behind a switch that joins all rails, place by place.
void join_by_segments(const spec::Survey& facts, std::vector<RailEnd>& rails) {
  for (const spec::LinkSegment& segment : facts.cabling->segments) {
    std::map<int, std::size_t> seen;  // how many ends of a node came before
    std::vector<std::vector<std::size_t>> by_place;
    for (const spec::LinkEnd& end : segment.ends) {
      const spec::SurveyedNode* node = &facts.nodes[static_cast<std::size_t>(end.node)];
      const auto found = std::ranges::find_if(
          rails, [&](const RailEnd& one) { return one.node == node && one.name == end.interface; });
      if (found == rails.end()) continue;
      const auto rail = static_cast<std::size_t>(found - rails.begin());
      const std::size_t place = seen[end.node]++;
      if (place >= by_place.size()) by_place.emplace_back();
      for (const std::size_t other : by_place[place]) join(rails, other, rail);
      by_place[place].push_back(rail);
    }
  }
}

// A rail that is silent has its other end where that of its port's other rail is: both share one cable.
void join_silent_rails(std::vector<RailEnd>& rails) {
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (rails[i].is_heard || !rails[i].peers.empty()) continue;
    const auto twin = std::ranges::find_if(rails, [&](const RailEnd& one) {
      return one.node == rails[i].node && one.port == rails[i].port && one.is_heard && one.peers.size() == 1;
    });
    if (twin == rails.end()) continue;
    const RailEnd& there = rails[twin->peers.front()];
    const auto other = std::ranges::find_if(rails, [&](const RailEnd& one) {
      return one.node == there.node && one.port == there.port && one.rail == rails[i].rail && !one.is_heard;
    });
    if (other != rails.end()) join(rails, i, static_cast<std::size_t>(other - rails.begin()));
  }
}

void find_peers(const spec::Survey& facts, std::vector<RailEnd>& rails) {
  if (facts.cabling && !facts.cluster) {
    join_by_segments(facts, rails);
    join_silent_rails(rails);
    return;
  }
  const bool named = std::all_of(rails.begin(), rails.end(), [](const RailEnd& end) { return end.wanted; });
  if (!named && join_by_cable(facts, rails)) return;
  std::vector<std::set<const spec::SurveyedNode*>> met(rails.size());  // each end has one peer on a node
  for (std::size_t i = 0; i < rails.size(); ++i) {
    for (std::size_t j = i + 1; j < rails.size(); ++j) {
      const auto& a = rails[i].wanted ? rails[i].wanted : rails[i].address;
      const auto& b = rails[j].wanted ? rails[j].wanted : rails[j].address;
      if (rails[i].node == rails[j].node || !a || !b || a->network() != b->network()) continue;
      if (met[i].contains(rails[j].node) || met[j].contains(rails[i].node)) continue;
      met[i].insert(rails[j].node);
      met[j].insert(rails[i].node);
      join(rails, i, j);
    }
  }
}

// Makeshift addresses that somebody's default left beside a proper one are nobody's network.
std::vector<Ipv4Prefix> meant_addresses(const spec::NetworkInterface& interface) {
  std::vector<Ipv4Prefix> meant = interface.addresses;
  const auto makeshift = [](const Ipv4Prefix& address) { return spec::is_link_local(address.address); };
  if (!std::all_of(meant.begin(), meant.end(), makeshift)) std::erase_if(meant, makeshift);
  return meant;
}

bool holds(const RailEnd& end, Ipv4 address) {
  return end.interface && std::any_of(end.interface->addresses.begin(), end.interface->addresses.end(),
                                      [&](const Ipv4Prefix& own) { return own.address == address; });
}

// A route to the rail's network, or into a part of it. A wider one loses against the rail's own.
bool is_within(const Ipv4Prefix& theirs, const spec::NetworkInterface& rail) {
  const std::vector<Ipv4Prefix> meant = meant_addresses(rail);
  return std::any_of(meant.begin(), meant.end(), [&](const Ipv4Prefix& own) {
    return theirs.length >= own.length && own.contains(theirs.address);
  });
}

// The rail of another node to which an address belongs; null: it is this one's, or nobody else has it.
const RailEnd* rightful_owner(const ClusterView& view, const spec::SurveyedNode& node,
                              const spec::NetworkInterface& interface, Ipv4 address) {
  const RailEnd* here = view.find_rail(node.name, interface.name);
  if (here && here->wanted && here->wanted->address == address) return nullptr;
  for (const RailEnd& end : view.rails) {
    if (end.node == &node || !holds(end, address)) continue;
    const bool is_theirs = end.wanted ? end.wanted->address == address : !here || &end < here;
    if (is_theirs) return &end;
  }
  return nullptr;
}

}  // namespace

bool RailEnd::is_ethernet() const { return !rdma || rdma->link_layer.value_or("Ethernet") == "Ethernet"; }

bool RailEnd::is_up() const {
  if (!needs_ip()) return interface && rdma->state == "ACTIVE";
  return interface && interface->up && interface->carrier;
}

std::string RailEnd::title() const {
  if (!interface || !interface->port) return fmt::format("rail {} ({})", rail, name);
  if (!spec::has_halves(*node->machine)) {
    return fmt::format("rail {} ({})", spec::rail_letter(*node->machine, *interface), name);
  }
  return fmt::format("half {} of port {} ({})", rail, port, name);
}

ClusterView::ClusterView(const spec::Survey& given)
    : facts(given), mistaken(find_mistaken(given)), lab(given.cluster && given.cluster->lab) {
  for (const spec::SurveyedNode& node : facts.nodes) {
    if (!node.machine || is_mistaken(node)) continue;
    const spec::ClusterNode* place = find_place(facts, node.name);
    std::vector<RailEnd> ends = place && !place->rails.empty()    ? named_rails(node, *place)
                                : facts.cabling && !facts.cluster ? heard_rails(facts, node)
                                                                  : cabled_rails(node);
    if (place) {
      std::erase_if(ends, [&](const RailEnd& end) { return is_marked_unused(*place, end.name); });
      std::ranges::move(unlisted_rails(*this, node, *place), std::back_inserter(unlisted));
    }
    std::move(ends.begin(), ends.end(), std::back_inserter(rails));
  }
  find_peers(facts, rails);
}

std::vector<const RailEnd*> ClusterView::rails_of(const spec::SurveyedNode& node) const {
  std::vector<const RailEnd*> found;
  for (const RailEnd& end : rails) {
    if (end.node == &node) found.push_back(&end);
  }
  return found;
}

const RailEnd* ClusterView::find_rail(std::string_view node, std::string_view interface) const {
  for (const RailEnd& end : rails) {
    if (end.node->name == node && end.name == interface) return &end;
  }
  return nullptr;
}

const spec::SurveyedNode* ClusterView::find_node(std::string_view name) const {
  for (const spec::SurveyedNode& node : facts.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

bool ClusterView::is_mistaken(const spec::SurveyedNode& node) const {
  return std::any_of(mistaken.begin(), mistaken.end(), [&](const MistakenNode& one) { return one.node == &node; });
}

std::optional<spec::Topology> ClusterView::topology() const {
  if (facts.cluster && facts.cluster->fabric) return facts.cluster->fabric->topology;
  return facts.cabling ? facts.cabling->topology : std::nullopt;
}

bool ClusterView::has_split_ports() const {
  return topology() == spec::Topology::kMesh || (facts.cabling && spec::has_split_ports(*facts.cabling));
}

int ClusterView::mtu_wanted() const {
  return facts.cluster && facts.cluster->fabric ? facts.cluster->fabric->mtu : spec::Fabric{}.mtu;
}

bool are_joined(const RailEnd& a, const RailEnd& b) {
  return a.works() && b.works() && a.address->network() == b.address->network();
}

std::optional<std::pair<Ipv4Prefix, Ipv4Prefix>> shared_subnet(const RailEnd& a, const RailEnd& b) {
  if (!a.holder || !b.holder || a.node != b.node || a.holder == b.holder) return std::nullopt;
  if (!a.needs_ip() || !b.needs_ip()) return std::nullopt;
  for (const Ipv4Prefix& one : meant_addresses(*a.holder)) {
    for (const Ipv4Prefix& other : meant_addresses(*b.holder)) {
      if (overlap(one.network(), other.network())) return std::pair(one, other);
    }
  }
  return std::nullopt;
}

bool has_wrong_prefix(const ClusterView& view, const RailEnd& end) {
  if (!end.works()) return false;
  if (end.wanted) return end.address->address == end.wanted->address && end.address->length != end.wanted->length;
  return std::any_of(end.peers.begin(), end.peers.end(), [&](std::size_t index) {
    const RailEnd& peer = view.rails[index];
    return &peer < &end && peer.works() && peer.address->length != end.address->length &&
           overlap(peer.address->network(), end.address->network());
  });
}

const spec::NetworkInterface* outsider_in_network(const ClusterView& view, const RailEnd& end) {
  if (!end.works() || has_wrong_prefix(view, end)) return nullptr;  // with the right one it may not
  for (const spec::NetworkInterface& other : end.node->machine->interfaces) {
    const bool takes_packets = other.up && other.carrier && other.kind != spec::InterfaceKind::kLoopback;
    if (!takes_packets || view.find_rail(end.node->name, other.name)) continue;
    for (const Ipv4Prefix& theirs : meant_addresses(other)) {
      if (is_within(theirs, *end.interface)) return &other;
    }
  }
  return nullptr;
}

Ipv4Prefix address_within(const spec::NetworkInterface& outsider, const spec::NetworkInterface& rail) {
  for (const Ipv4Prefix& address : meant_addresses(outsider)) {
    if (is_within(address, rail)) return address;
  }
  return outsider.addresses.front();
}

bool shares_a_subnet(const ClusterView& view, const RailEnd& end) {
  const std::vector<const RailEnd*> own = view.rails_of(*end.node);
  return std::any_of(own.begin(), own.end(),
                     [&](const RailEnd* rail) { return shared_subnet(end, *rail).has_value(); }) ||
         outsider_in_network(view, end);
}

std::vector<DoubleAddress> double_addresses(const ClusterView& view) {
  std::vector<DoubleAddress> found;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.is_mistaken(node)) continue;
    for (const spec::NetworkInterface& interface : node.machine->interfaces) {
      // Every machine has docker0 and lo, with the same addresses everywhere.
      const bool local =
          interface.kind == spec::InterfaceKind::kLoopback || interface.kind == spec::InterfaceKind::kBridge;
      if (local || !interface.up) continue;
      for (const Ipv4Prefix& address : interface.addresses) {
        if (const RailEnd* owner = rightful_owner(view, node, interface, address.address)) {
          found.push_back({&node, &interface, owner, address.address});
        }
      }
    }
  }
  return found;
}

bool has_double(const ClusterView& view, const RailEnd& end) {
  const std::vector<DoubleAddress> all = double_addresses(view);
  return std::any_of(all.begin(), all.end(), [&](const DoubleAddress& found) {
    return found.owner == &end || (found.node == end.node && found.interface == end.interface);
  });
}

const spec::Hardware* hardware_of(const spec::Machine& machine) {
  for (const spec::Hardware& hardware : spec::hardware_catalogue()) {
    for (const spec::Gpu& gpu : machine.gpus) {
      if (gpu.name.starts_with(hardware.gpu)) return &hardware;
    }
  }
  return nullptr;
}

bool is_gb10(const spec::Machine& machine) {
  const spec::Hardware* hardware = hardware_of(machine);
  return hardware && hardware->name == "spark";
}

BitsPerSecond port_rate(const ClusterView& view, const spec::Hardware& hardware) {
  return hardware.rail_rate * (view.has_split_ports() ? 1.0 : static_cast<double>(hardware.rails_per_cable));
}

bool has_active_rdma(const spec::Machine& machine) {
  return std::any_of(machine.rdma_devices.begin(), machine.rdma_devices.end(),
                     [](const spec::RdmaDevice& device) { return device.state == "ACTIVE"; });
}

bool is_container_bridge(const spec::NetworkInterface& interface) {
  if (interface.kind != spec::InterfaceKind::kBridge) return false;
  constexpr std::string_view kNames[] = {"docker", "br-", "podman", "cni", "virbr", "lxdbr"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return interface.name.starts_with(name); });
}

const spec::Route* find_route(const spec::Machine& machine, Ipv4 address) {
  const spec::Route* best = nullptr;
  const auto length = [](const spec::Route& route) { return route.destination ? route.destination->length : -1; };
  for (const spec::Route& route : machine.routes) {
    if (route.down || (route.destination && !route.destination->contains(address))) continue;
    const bool better = !best || length(route) > length(*best) ||
                        (length(route) == length(*best) && route.metric.value_or(0) < best->metric.value_or(0));
    if (better) best = &route;
  }
  return best;
}

std::optional<std::vector<std::string>> routes_to(const RailEnd& from, const RailEnd& to) {
  for (const spec::PathProbe& path : from.node->paths) {
    const bool same = path.interface == from.name && to.address && path.peer_address == to.address->address;
    if (same && path.routed) return path.routes;
  }
  const spec::Route* route = to.address ? find_route(*from.node->machine, to.address->address) : nullptr;
  return route ? std::optional(std::vector<std::string>{route->interface}) : std::nullopt;
}

bool goes_elsewhere(const RailEnd& from, const RailEnd& to) {
  const auto ways = routes_to(from, to);
  using Names = std::vector<std::string>;
  return ways && *ways != Names{from.name} && *ways != Names{from.holder->name};
}

const RailEnd* refusing_end(const ClusterView& view, const spec::RailMeasurement& way) {
  const RailEnd* from = view.find_rail(way.from, way.from_interface);
  const RailEnd* to = view.find_rail(way.to, way.to_interface);
  if (!way.is_refused() || !from || !to || !are_joined(*from, *to)) return nullptr;
  const auto passes_all = [](const RailEnd& end) { return end.node->drops_packets == false; };
  if (passes_all(*from) != passes_all(*to)) return passes_all(*from) ? to : from;
  if (passes_all(*from)) return nullptr;
  const bool at_from = way.failure->find(yoke::to_string(from->address->address) + ":") != std::string::npos;
  return at_from ? from : to;
}

}  // namespace yoke::check
