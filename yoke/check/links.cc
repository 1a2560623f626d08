// Interfaces, links and addresses of the rails.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/rules.h"
#include "yoke/spec/fabric.h"

namespace yoke::check {
namespace {

bool is_down(const RailEnd& end) { return end.interface && !end.is_up(); }

// A port that was taken down, and a machine that is off, show as a lost link at the other end: the cause is told there.
bool is_caused_by_peer(const ClusterView& view, const RailEnd& end) {
  const bool behind_switch = end.peers.size() > 1 || view.topology() == spec::Topology::kSwitch;
  if (!end.interface->up || behind_switch) return false;  // behind a switch the link is this node's own
  const bool peer_unseen = std::any_of(view.facts.nodes.begin(), view.facts.nodes.end(),
                                       [](const spec::SurveyedNode& node) { return !node.machine; });
  if (end.peers.empty()) return peer_unseen;
  const RailEnd& peer = view.rails[end.peers.front()];
  if (!peer.interface) return false;
  // Where both ends only lack the link, the first of them tells it.
  const bool reported_there = peer.interface->up && !peer.interface->carrier && &peer < &end;
  return !peer.interface->up || reported_there;
}

// Down on its own account: what the other end, or the machine there, does to it is told there.
bool is_itself_down(const ClusterView& view, const RailEnd& end) {
  return is_down(end) && !is_caused_by_peer(view, end);
}

bool is_whole_port_down(const ClusterView& view, const RailEnd& end) {
  // Which rails make a port is not known, or each has a cable of its own.
  if (!end.interface->port || view.has_split_ports()) return false;
  const std::vector<const RailEnd*> rails = view.rails_of(*end.node);
  return std::all_of(rails.begin(), rails.end(),
                     [&](const RailEnd* rail) { return rail->port != end.port || is_itself_down(view, *rail); });
}

// Where its twin is down as well, by the other end's doing, the two are two faults.
bool has_twin_up(const ClusterView& view, const RailEnd& end) {
  const std::vector<const RailEnd*> rails = view.rails_of(*end.node);
  return std::any_of(rails.begin(), rails.end(),
                     [&](const RailEnd* rail) { return rail->port == end.port && rail->is_up(); });
}

std::string state_of(const RailEnd& end) {
  return fmt::format("{} on {} is {}", end.name, end.node->name,
                     !end.interface->up ? "down (switched off)" : "up, but without carrier");
}

std::string states_of(const ClusterView& view, const RailEnd& end) {
  std::string states = state_of(end);
  for (const std::size_t peer : end.peers) {
    if (is_down(view.rails[peer])) states += "; " + state_of(view.rails[peer]);
  }
  return states;
}

std::string how_to_raise(const RailEnd& end) {
  if (!end.interface->up) return fmt::format("'ip link set {} up' on {}", end.name, end.node->name);
  return "push the cable in at both ends until it clicks; try the other cable or port; 'yoke check' again";
}

// Of a mesh: the two nodes are told, as the half of a port says little about where its link goes.
Advice split_link_down(const ClusterView& view, const RailEnd& end) {
  const std::string other = end.peers.empty() ? "another node" : view.rails[end.peers.front()].node->name;
  return {.node = end.node->name,
          .subject = end.name,
          .what = fmt::format("the link between {} and {} is down: {} has no link", end.node->name, other, end.title()),
          .evidence = states_of(view, end),
          .consequence =
              fmt::format("{} and {} have no other link: jobs over all nodes do not start", end.node->name, other),
          .fix = end.interface->up
                     ? fmt::format("push the cable between {} and {} and the optics in at both ends; then "
                                   "try another of each; 'yoke check' again",
                                   end.node->name, other)
                     : how_to_raise(end),
          .rails = {&end}};
}

// As behind a bridge or a bond over the rail, or where the address was given to the wrong port.
std::string held_elsewhere(const RailEnd& end) {
  if (!end.wanted) return "";
  for (const spec::NetworkInterface& other : end.node->machine->interfaces) {
    for (const Ipv4Prefix& address : other.addresses) {
      if (address.address == end.wanted->address)
        return fmt::format("; {} has {}", other.name, yoke::to_string(address));
    }
  }
  return "";
}

std::string how_to_address(const ClusterView& view, const RailEnd& end) {
  if (!end.bond.empty()) {
    return fmt::format(
        "it is a member of {}, and addresses are the bond's: give {} one, or take the rail out ('ip link set "
        "{} nomaster' on {}) and run 'yoke link setup'",
        end.bond, end.bond, end.name, end.node->name);
  }
  if (view.facts.cabling) {
    return "'yoke link discover -o cluster.yaml --force' proposes an address for it beside the others, 'yoke link "
           "setup' sets it";
  }
  if (!end.wanted) return "'yoke link setup' gives each half an address in a network of its own";
  return fmt::format("'yoke link setup', or 'ip addr add {} dev {}' on {}", yoke::to_string(*end.wanted), end.name,
                     end.node->name);
}

Advice shared_with(const RailEnd& rail, const spec::NetworkInterface& outsider) {
  return {.node = rail.node->name,
          .subject = outsider.name,
          .what = fmt::format("{} and {} of {} are in one network", rail.title(), outsider.name, rail.node->name),
          .evidence = fmt::format("{} has {}, {} has {}", rail.name, yoke::to_string(*rail.address), outsider.name,
                                  yoke::to_string(address_within(outsider, *rail.interface))),
          .consequence =
              "the kernel sends what is meant for the rail by either of them, and which one may change with "
              "every boot: traffic at the rate of the other",
          .fix = fmt::format("give {} an address in another network, or the rail: 'yoke link discover --new-addresses'",
                             outsider.name),
          .rails = {&rail}};
}

Advice no_port_has_a_link(const spec::SurveyedNode& node) {
  return {.node = node.name,
          .what = fmt::format("no fast port of {} has a link", node.name),
          .evidence = "its fast interfaces are without carrier",
          .consequence = "everything between the nodes would go over the management network",
          .fix = "join the nodes with a cable in the fast ports, then check again"};
}

}  // namespace

AdviceList find_missing_interfaces(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (end.interface) continue;
    std::vector<std::string> fast;
    for (const spec::NetworkInterface* interface : spec::fast_interfaces(*end.node->machine))
      fast.push_back(interface->name);
    list.push_back({.node = end.node->name,
                    .subject = end.name,
                    .what = fmt::format("{} has no interface {}", end.node->name, end.name),
                    .evidence = fast.empty() ? "it has no fast interface of this name"
                                             : fmt::format("its fast interfaces are {}", fmt::join(fast, ", ")),
                    .consequence = "this rail cannot be used, and programs that are set to use it fail",
                    .fix = "correct 'rails' of this node in the cluster file, or look why the NIC is gone ('lspci')"});
  }
  return list;
}

AdviceList find_ports_down(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    const std::vector<const RailEnd*> rails = view.rails_of(node);
    const bool listed = view.facts.cluster && std::ranges::any_of(view.facts.cluster->nodes, [&](const auto& place) {
                          return place.name == node.name && !place.rails.empty();
                        });
    const bool joins = view.facts.nodes.size() > 1 && !view.is_mistaken(node) && !listed;
    if (rails.empty() && joins && !spec::fabric_interfaces(*node.machine).empty()) {
      list.push_back(no_port_has_a_link(node));
    }
    std::vector<int> reported;
    for (const RailEnd* end : rails) {
      if (!is_itself_down(view, *end) || !is_whole_port_down(view, *end)) continue;
      if (std::find(reported.begin(), reported.end(), end->port) != reported.end()) continue;
      reported.push_back(end->port);
      // On a server a port is one rail, and is called by its letter.
      const auto halves = std::ranges::count(rails, end->port, [](const RailEnd* other) { return other->port; });
      const std::string port = halves == 1 ? end->title() : fmt::format("port {}", end->port);
      list.push_back({.node = node.name,
                      .subject = fmt::format("port {}", end->port),
                      .what = fmt::format("{} of {} has no link", port, node.name),
                      .evidence = states_of(view, *end),
                      .consequence = "nothing passes this cable: the nodes cannot work together over it",
                      .fix = how_to_raise(*end)});
    }
  }
  return list;
}

AdviceList find_rails_down(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!is_itself_down(view, end) || is_whole_port_down(view, end)) continue;
    if (view.has_split_ports()) {
      list.push_back(split_link_down(view, end));
      continue;
    }
    list.push_back({.node = end.node->name,
                    .subject = end.name,
                    .what = fmt::format("{} on {} has no link{}", end.title(), end.node->name,
                                        has_twin_up(view, end) ? ", while the port's other rail has" : ""),
                    .evidence = states_of(view, end),
                    .consequence = "half of the cable's bandwidth is gone; what is pinned to this rail fails",
                    .fix = end.interface->up
                               ? "reboot this node with the cable in place: both rails of a port share one cable, so "
                                 "it is not the cable"
                               : how_to_raise(end),
                    .rails = {&end}});
  }
  return list;
}

AdviceList find_rails_unaddressed(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!end.is_up() || end.address || !end.needs_ip()) continue;
    list.push_back({.node = end.node->name,
                    .subject = end.name,
                    .what = fmt::format("{} on {} has no IPv4 address", end.title(), end.node->name),
                    .evidence = "the interface is up and has a link, but no address" + held_elsewhere(end),
                    .consequence = "TCP cannot use this rail; RDMA may still, by its link-local GID (RoCE v1), and "
                                   "NCCL may leave it out",
                    .fix = how_to_address(view, end),
                    .rails = {&end}});
  }
  return list;
}

AdviceList find_double_addresses(const ClusterView& view) {
  AdviceList list;
  for (const DoubleAddress& found : double_addresses(view)) {
    std::vector<const RailEnd*> rails = {found.owner};
    if (const RailEnd* here = view.find_rail(found.node->name, found.interface->name)) rails.push_back(here);
    list.push_back({.node = found.node->name,
                    .subject = found.interface->name,
                    .what = fmt::format("{} on {} has the address of {} on {}", found.interface->name, found.node->name,
                                        found.owner->name, found.owner->node->name),
                    .evidence = fmt::format("both have {}", yoke::to_string(found.address)),
                    .consequence = "packets to this address go to one or the other as it happens: connections hang or "
                                   "end on the wrong machine",
                    .fix = fmt::format("take {} from {} on {} ('ip addr del'), then 'yoke link setup'",
                                       yoke::to_string(found.address), found.interface->name, found.node->name),
                    .rails = std::move(rails)});
  }
  return list;
}

AdviceList find_other_addresses(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!end.address || !end.wanted || end.address->address == end.wanted->address) continue;
    list.push_back(
        {.node = end.node->name,
         .subject = end.name,
         .what = fmt::format("{} on {} has another address than in the cluster file", end.title(), end.node->name),
         .evidence =
             fmt::format("{} there, {} in the file", yoke::to_string(*end.address), yoke::to_string(*end.wanted)),
         .consequence = "programs that take addresses from the cluster file do not find this node",
         .fix = "'yoke link setup' sets the file's address; or write the real one into the file",
         .rails = {&end}});
  }
  return list;
}

AdviceList find_other_subnets(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!end.works() || end.peers.empty()) continue;
    for (const std::size_t index : end.peers) {
      const RailEnd& peer = view.rails[index];
      if (!peer.works() || peer.address->network() == end.address->network()) continue;
      // Told of the end that is not as the cluster file has it; without its word, of the second.
      const bool is_as_wanted = end.wanted ? end.wanted->network() == end.address->network() : &end < &peer;
      if (is_as_wanted) continue;
      list.push_back(
          {.node = end.node->name,
           .subject = end.name,
           .what = fmt::format("{} on {} is in another network than its other end on {}", end.title(), end.node->name,
                               peer.node->name),
           .evidence = fmt::format("{} on {}, {} on {}", yoke::to_string(*end.address), end.node->name,
                                   yoke::to_string(*peer.address), peer.node->name),
           .consequence = "IP does not pass this rail, and RoCE v2 does not connect over it",
           .fix = view.facts.cabling
                      ? std::string(kNewAddresses)
                      : fmt::format("give both ends addresses of one network ('yoke link setup'), such as {}",
                                    yoke::to_string(end.wanted.value_or(*peer.address).network())),
           .rails = {&end, &peer}});
      break;
    }
  }
  return list;
}

AdviceList find_shared_subnets(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const std::vector<const RailEnd*> rails = view.rails_of(node);
    for (std::size_t i = 0; i < rails.size(); ++i) {
      const auto other = std::find_if(
          rails.begin() + static_cast<std::ptrdiff_t>(i) + 1, rails.end(),
          [&](const RailEnd* rail) { return shared_subnet(*rails[i], *rail) && !has_wrong_prefix(view, *rail); });
      if (other == rails.end() || has_wrong_prefix(view, *rails[i])) continue;
      const RailEnd& moved = **other;
      const auto shared = *shared_subnet(*rails[i], moved);
      list.push_back(
          {.node = node.name,
           .subject = moved.name,
           .what = fmt::format("two rails of {} are in one network", node.name),
           .evidence = fmt::format("{} has {}, {} has {}", rails[i]->name, yoke::to_string(shared.first), moved.name,
                                   yoke::to_string(shared.second)),
           .consequence = "the kernel sends everything of this network by one of them and answers for both: "
                          "TCP gets one rail, and connections bound to the other can hang",
           .fix = moved.wanted == shared.second
                      ? "the cluster file has it so: 'yoke link discover --new-addresses' proposes a network "
                        "for each rail, 'yoke link setup' makes them"
                  : view.facts.cabling ? std::string(kNewAddresses)
                                       : "give each half a network of its own: 'yoke link setup'",
           .rails = {rails[i], &moved}});
    }
    for (const RailEnd* rail : rails) {
      const spec::NetworkInterface* outsider = outsider_in_network(view, *rail);
      if (outsider) list.push_back(shared_with(*rail, *outsider));
    }
  }
  return list;
}

}  // namespace yoke::check
