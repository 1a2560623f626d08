#include "yoke/check/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/spec/address_holder.h"
#include "yoke/spec/fabric.h"

namespace yoke {
namespace {

// The wanted address where the interface has it, else one of the wanted network, else the first that is no makeshift.
std::optional<Ipv4Prefix> address_of(const NetworkInterface& interface, const std::optional<Ipv4Prefix>& wanted) {
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
  const auto proper = std::find_if(all.begin(), all.end(), [](const auto& a) { return !is_link_local(a.address); });
  return proper == all.end() ? all.front() : *proper;
}

// A bond's member has the bond's address, but not one that the cluster file gives to another half. Where the file names
// this interface, what is tried is bound to it, and does not pass where a VLAN has the address: the file should name
// that.
const NetworkInterface* holder_of(const HalfEnd& end) {
  const auto gids = end.rdma ? end.rdma->gids : std::vector<GidEntry>{};
  const NetworkInterface& holder = address_holder(*end.node->machine, *end.interface, gids);
  if (!end.wanted) return &holder;
  const auto held = address_of(holder, end.wanted);
  return holder.name == end.bond && held && held->address == end.wanted->address ? &holder : end.interface;
}

void fill_from_machine(HalfEnd& end) {
  const Machine& machine = *end.node->machine;
  end.interface = find_interface(machine, end.name);
  if (!end.interface) return;
  end.port = end.interface->port.value_or(0);
  if (end.interface->half) end.half = *end.interface->half;
  if (end.interface->rdma_device) end.rdma = find_rdma_device(machine, *end.interface->rdma_device);
  const NetworkInterface* master = end.interface->master ? find_interface(machine, *end.interface->master) : nullptr;
  if (master && master->kind == InterfaceKind::kBond) end.bond = master->name;
  end.holder = holder_of(end);
  end.address = address_of(*end.holder, end.wanted);
}

// Without the cluster file's word: ports of the fabric with a link on any half. One without cable is nobody's fault.
std::vector<HalfEnd> cabled_halves(const SurveyedNode& node) {
  std::vector<HalfEnd> ends;
  std::set<int> cabled;
  for (const NetworkInterface* interface : fabric_interfaces(*node.machine)) {
    HalfEnd end{.node = &node, .name = interface->name};
    fill_from_machine(end);
    if (end.is_up()) cabled.insert(end.port);
    ends.push_back(std::move(end));
  }
  std::erase_if(ends, [&](const HalfEnd& end) { return !cabled.contains(end.port); });
  return ends;
}

bool is_in_a_segment(const Cabling& cabling, int node, const std::string& interface) {
  return std::ranges::any_of(cabling.segments, [&](const LinkSegment& segment) {
    return std::ranges::any_of(segment.ends,
                               [&](const LinkEnd& end) { return end.node == node && end.interface == interface; });
  });
}

// A port of which one half joins nodes has a good cable: all of its halves are in use.
std::vector<HalfEnd> heard_halves(const Survey& facts, const SurveyedNode& node) {
  const int place = static_cast<int>(&node - facts.nodes.data());
  std::vector<HalfEnd> ends;
  std::set<int> joined;
  for (const NetworkInterface* interface : fast_interfaces(*node.machine)) {
    HalfEnd end{.node = &node, .name = interface->name};
    fill_from_machine(end);
    end.is_heard = is_in_a_segment(*facts.cabling, place, end.name);
    if (end.is_heard) joined.insert(end.port);
    ends.push_back(std::move(end));
  }
  std::erase_if(ends, [&](const HalfEnd& end) { return !joined.contains(end.port); });
  return ends;
}

std::vector<HalfEnd> named_halves(const SurveyedNode& node, const ClusterNode& place) {
  std::vector<HalfEnd> ends;
  for (std::size_t i = 0; i < place.halves.size(); ++i) {
    HalfEnd end{.node = &node,
                .name = place.halves[i].interface,
                .half = std::string(1, static_cast<char>('A' + i % 26)),
                .wanted = place.halves[i].address};
    fill_from_machine(end);
    ends.push_back(std::move(end));
  }
  return ends;
}

const ClusterNode* find_place(const Survey& facts, const std::string& name) {
  if (!facts.cluster) return nullptr;
  for (const ClusterNode& place : facts.cluster->nodes) {
    if (place.name == name) return &place;
  }
  return nullptr;
}

void join(std::vector<HalfEnd>& halves, std::size_t a, std::size_t b) {
  halves[a].peers.push_back(b);
  halves[b].peers.push_back(a);
}

// Two machines with one cable each: its halves belong together whatever their addresses say, which may be the fault.
bool join_by_cable(const Survey& facts, std::vector<HalfEnd>& halves) {
  if (facts.nodes.size() != 2) return false;
  std::vector<std::set<int>> ports(2);
  for (const HalfEnd& end : halves) ports[end.node == &facts.nodes[1]].insert(end.port);
  if (ports[0].size() != 1 || ports[1].size() != 1) return false;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    for (std::size_t j = i + 1; j < halves.size(); ++j) {
      if (halves[i].node != halves[j].node && halves[i].half == halves[j].half) join(halves, i, j);
    }
  }
  return true;
}

// Where several ends of a node are in one segment, as behind a switch that joins all halves, place by place.
void join_by_segments(const Survey& facts, std::vector<HalfEnd>& halves) {
  for (const LinkSegment& segment : facts.cabling->segments) {
    std::map<int, std::size_t> seen;  // how many ends of a node came before
    std::vector<std::vector<std::size_t>> by_place;
    for (const LinkEnd& end : segment.ends) {
      const SurveyedNode* node = &facts.nodes[static_cast<std::size_t>(end.node)];
      const auto found = std::ranges::find_if(
          halves, [&](const HalfEnd& one) { return one.node == node && one.name == end.interface; });
      if (found == halves.end()) continue;
      const auto half = static_cast<std::size_t>(found - halves.begin());
      const std::size_t place = seen[end.node]++;
      if (place >= by_place.size()) by_place.emplace_back();
      for (const std::size_t other : by_place[place]) join(halves, other, half);
      by_place[place].push_back(half);
    }
  }
}

// A half that is silent has its other end where that of its port's other half is: both share one cable.
void join_silent_halves(std::vector<HalfEnd>& halves) {
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if (halves[i].is_heard || !halves[i].peers.empty()) continue;
    const auto twin = std::ranges::find_if(halves, [&](const HalfEnd& one) {
      return one.node == halves[i].node && one.port == halves[i].port && one.is_heard && one.peers.size() == 1;
    });
    if (twin == halves.end()) continue;
    const HalfEnd& there = halves[twin->peers.front()];
    const auto other = std::ranges::find_if(halves, [&](const HalfEnd& one) {
      return one.node == there.node && one.port == there.port && one.half == halves[i].half && !one.is_heard;
    });
    if (other != halves.end()) join(halves, i, static_cast<std::size_t>(other - halves.begin()));
  }
}

void find_peers(const Survey& facts, std::vector<HalfEnd>& halves) {
  if (facts.cabling && !facts.cluster) {
    join_by_segments(facts, halves);
    join_silent_halves(halves);
    return;
  }
  const bool named = std::all_of(halves.begin(), halves.end(), [](const HalfEnd& end) { return end.wanted; });
  if (!named && join_by_cable(facts, halves)) return;
  std::vector<std::set<const SurveyedNode*>> met(halves.size());  // each end has one peer on a node
  for (std::size_t i = 0; i < halves.size(); ++i) {
    for (std::size_t j = i + 1; j < halves.size(); ++j) {
      const auto& a = halves[i].wanted ? halves[i].wanted : halves[i].address;
      const auto& b = halves[j].wanted ? halves[j].wanted : halves[j].address;
      if (halves[i].node == halves[j].node || !a || !b || a->network() != b->network()) continue;
      if (met[i].contains(halves[j].node) || met[j].contains(halves[i].node)) continue;
      met[i].insert(halves[j].node);
      met[j].insert(halves[i].node);
      join(halves, i, j);
    }
  }
}

// Makeshift addresses that somebody's default left beside a proper one are nobody's network.
std::vector<Ipv4Prefix> meant_addresses(const NetworkInterface& interface) {
  std::vector<Ipv4Prefix> meant = interface.addresses;
  const auto makeshift = [](const Ipv4Prefix& address) { return is_link_local(address.address); };
  if (!std::all_of(meant.begin(), meant.end(), makeshift)) std::erase_if(meant, makeshift);
  return meant;
}

bool holds(const HalfEnd& end, Ipv4 address) {
  return end.interface && std::any_of(end.interface->addresses.begin(), end.interface->addresses.end(),
                                      [&](const Ipv4Prefix& own) { return own.address == address; });
}

// A route to the half's network, or into a part of it. A wider one loses against the half's own.
bool is_within(const Ipv4Prefix& theirs, const NetworkInterface& half) {
  const std::vector<Ipv4Prefix> meant = meant_addresses(half);
  return std::any_of(meant.begin(), meant.end(), [&](const Ipv4Prefix& own) {
    return theirs.length >= own.length && own.contains(theirs.address);
  });
}

// The half of another node to which an address belongs; null: it is this one's, or nobody else has it.
const HalfEnd* rightful_owner(const ClusterView& view, const SurveyedNode& node, const NetworkInterface& interface,
                              Ipv4 address) {
  const HalfEnd* here = view.find_half(node.name, interface.name);
  if (here && here->wanted && here->wanted->address == address) return nullptr;
  for (const HalfEnd& end : view.halves) {
    if (end.node == &node || !holds(end, address)) continue;
    const bool is_theirs = end.wanted ? end.wanted->address == address : !here || &end < here;
    if (is_theirs) return &end;
  }
  return nullptr;
}

}  // namespace

bool HalfEnd::is_ethernet() const { return !rdma || rdma->link_layer.value_or("Ethernet") == "Ethernet"; }

bool HalfEnd::is_up() const {
  if (!needs_ip()) return interface && rdma->state == "ACTIVE";
  return interface && interface->up && interface->carrier;
}

std::string HalfEnd::title() const {
  if (!interface || !interface->port) return fmt::format("half {} ({})", half, name);
  return fmt::format("half {} of port {} ({})", half, port, name);
}

ClusterView::ClusterView(const Survey& given)
    : facts(given), mistaken(find_mistaken(given)), lab(given.cluster && given.cluster->lab) {
  for (const SurveyedNode& node : facts.nodes) {
    if (!node.machine || is_mistaken(node)) continue;
    const ClusterNode* place = find_place(facts, node.name);
    std::vector<HalfEnd> ends = place && !place->halves.empty()   ? named_halves(node, *place)
                                : facts.cabling && !facts.cluster ? heard_halves(facts, node)
                                                                  : cabled_halves(node);
    std::move(ends.begin(), ends.end(), std::back_inserter(halves));
  }
  find_peers(facts, halves);
}

std::vector<const HalfEnd*> ClusterView::halves_of(const SurveyedNode& node) const {
  std::vector<const HalfEnd*> found;
  for (const HalfEnd& end : halves) {
    if (end.node == &node) found.push_back(&end);
  }
  return found;
}

const HalfEnd* ClusterView::find_half(std::string_view node, std::string_view interface) const {
  for (const HalfEnd& end : halves) {
    if (end.node->name == node && end.name == interface) return &end;
  }
  return nullptr;
}

const SurveyedNode* ClusterView::find_node(std::string_view name) const {
  for (const SurveyedNode& node : facts.nodes) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

bool ClusterView::is_mistaken(const SurveyedNode& node) const {
  return std::any_of(mistaken.begin(), mistaken.end(), [&](const MistakenNode& one) { return one.node == &node; });
}

int ClusterView::mtu_wanted() const {
  return facts.cluster && facts.cluster->fabric ? facts.cluster->fabric->mtu : Fabric{}.mtu;
}

bool are_joined(const HalfEnd& a, const HalfEnd& b) {
  return a.works() && b.works() && a.address->network() == b.address->network();
}

std::optional<std::pair<Ipv4Prefix, Ipv4Prefix>> shared_subnet(const HalfEnd& a, const HalfEnd& b) {
  if (!a.holder || !b.holder || a.node != b.node || a.holder == b.holder) return std::nullopt;
  if (!a.needs_ip() || !b.needs_ip()) return std::nullopt;
  for (const Ipv4Prefix& one : meant_addresses(*a.holder)) {
    for (const Ipv4Prefix& other : meant_addresses(*b.holder)) {
      if (overlap(one.network(), other.network())) return std::pair(one, other);
    }
  }
  return std::nullopt;
}

bool has_wrong_prefix(const ClusterView& view, const HalfEnd& end) {
  if (!end.works()) return false;
  if (end.wanted) return end.address->address == end.wanted->address && end.address->length != end.wanted->length;
  return std::any_of(end.peers.begin(), end.peers.end(), [&](std::size_t index) {
    const HalfEnd& peer = view.halves[index];
    return &peer < &end && peer.works() && peer.address->length != end.address->length &&
           overlap(peer.address->network(), end.address->network());
  });
}

const NetworkInterface* outsider_in_network(const ClusterView& view, const HalfEnd& end) {
  if (!end.works() || has_wrong_prefix(view, end)) return nullptr;  // with the right one it may not
  for (const NetworkInterface& other : end.node->machine->interfaces) {
    const bool takes_packets = other.up && other.carrier && other.kind != InterfaceKind::kLoopback;
    if (!takes_packets || view.find_half(end.node->name, other.name)) continue;
    for (const Ipv4Prefix& theirs : meant_addresses(other)) {
      if (is_within(theirs, *end.interface)) return &other;
    }
  }
  return nullptr;
}

Ipv4Prefix address_within(const NetworkInterface& outsider, const NetworkInterface& half) {
  for (const Ipv4Prefix& address : meant_addresses(outsider)) {
    if (is_within(address, half)) return address;
  }
  return outsider.addresses.front();
}

bool shares_a_subnet(const ClusterView& view, const HalfEnd& end) {
  const std::vector<const HalfEnd*> own = view.halves_of(*end.node);
  return std::any_of(own.begin(), own.end(),
                     [&](const HalfEnd* half) { return shared_subnet(end, *half).has_value(); }) ||
         outsider_in_network(view, end);
}

std::vector<DoubleAddress> double_addresses(const ClusterView& view) {
  std::vector<DoubleAddress> found;
  for (const SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || view.is_mistaken(node)) continue;
    for (const NetworkInterface& interface : node.machine->interfaces) {
      // Every machine has docker0 and lo, with the same addresses everywhere.
      const bool local = interface.kind == InterfaceKind::kLoopback || interface.kind == InterfaceKind::kBridge;
      if (local || !interface.up) continue;
      for (const Ipv4Prefix& address : interface.addresses) {
        if (const HalfEnd* owner = rightful_owner(view, node, interface, address.address)) {
          found.push_back({&node, &interface, owner, address.address});
        }
      }
    }
  }
  return found;
}

bool has_double(const ClusterView& view, const HalfEnd& end) {
  const std::vector<DoubleAddress> all = double_addresses(view);
  return std::any_of(all.begin(), all.end(), [&](const DoubleAddress& found) {
    return found.owner == &end || (found.node == end.node && found.interface == end.interface);
  });
}

const Hardware* hardware_of(const Machine& machine) {
  for (const Hardware& hardware : hardware_catalogue()) {
    for (const Gpu& gpu : machine.gpus) {
      if (gpu.name.starts_with(hardware.gpu)) return &hardware;
    }
  }
  return nullptr;
}

bool is_gb10(const Machine& machine) {
  const Hardware* hardware = hardware_of(machine);
  return hardware && hardware->name == "spark";
}

bool has_active_rdma(const Machine& machine) {
  return std::any_of(machine.rdma_devices.begin(), machine.rdma_devices.end(),
                     [](const RdmaDevice& device) { return device.state == "ACTIVE"; });
}

bool is_container_bridge(const NetworkInterface& interface) {
  if (interface.kind != InterfaceKind::kBridge) return false;
  constexpr std::string_view kNames[] = {"docker", "br-", "podman", "cni", "virbr", "lxdbr"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view name) { return interface.name.starts_with(name); });
}

const Route* find_route(const Machine& machine, Ipv4 address) {
  const Route* best = nullptr;
  const auto length = [](const Route& route) { return route.destination ? route.destination->length : -1; };
  for (const Route& route : machine.routes) {
    if (route.down || (route.destination && !route.destination->contains(address))) continue;
    const bool better = !best || length(route) > length(*best) ||
                        (length(route) == length(*best) && route.metric.value_or(0) < best->metric.value_or(0));
    if (better) best = &route;
  }
  return best;
}

std::optional<std::vector<std::string>> ways_to(const HalfEnd& from, const HalfEnd& to) {
  for (const PathTrial& path : from.node->paths) {
    const bool same = path.interface == from.name && to.address && path.peer_address == to.address->address;
    if (same && path.routed) return path.routes;
  }
  const Route* route = to.address ? find_route(*from.node->machine, to.address->address) : nullptr;
  return route ? std::optional(std::vector<std::string>{route->interface}) : std::nullopt;
}

bool goes_elsewhere(const HalfEnd& from, const HalfEnd& to) {
  const auto ways = ways_to(from, to);
  using Names = std::vector<std::string>;
  return ways && *ways != Names{from.name} && *ways != Names{from.holder->name};
}

const HalfEnd* refusing_end(const ClusterView& view, const HalfMeasurement& way) {
  const HalfEnd* from = view.find_half(way.from, way.from_interface);
  const HalfEnd* to = view.find_half(way.to, way.to_interface);
  if (!way.is_refused() || !from || !to || !are_joined(*from, *to)) return nullptr;
  const auto passes_all = [](const HalfEnd& end) { return end.node->drops_packets == false; };
  if (passes_all(*from) != passes_all(*to)) return passes_all(*from) ? to : from;
  if (passes_all(*from)) return nullptr;
  const bool at_from = way.failure->find(to_string(from->address->address) + ":") != std::string::npos;
  return at_from ? from : to;
}

}  // namespace yoke
