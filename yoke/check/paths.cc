// What passes the rails, by their settings and by what was tried: MTU, pings, connections.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// The MTU of an interface over InfiniBand is that of IP alone, with limits of its own (4092, 65520).
bool has_mtu_to_evaluate(const RailEnd& end) { return end.is_up() && end.is_ethernet(); }

// The peer whose MTU shows that this end's is the wrong one; null where it is not.
const RailEnd* mtu_witness(const ClusterView& view, const RailEnd& end) {
  if (!has_mtu_to_evaluate(end)) return nullptr;
  for (const std::size_t index : end.peers) {
    const RailEnd& peer = view.rails[index];
    if (!peer.is_up() || peer.interface->mtu == end.interface->mtu) continue;
    const bool peer_right = peer.interface->mtu == view.mtu_wanted();
    const bool end_right = end.interface->mtu == view.mtu_wanted();
    if (end_right ? false : peer_right || end.interface->mtu < peer.interface->mtu) return &peer;
  }
  return nullptr;
}

bool differs_somewhere(const ClusterView& view, const RailEnd& end) {
  return std::any_of(end.peers.begin(), end.peers.end(), [&](std::size_t index) {
    const RailEnd& peer = view.rails[index];
    return peer.is_up() && peer.interface->mtu != end.interface->mtu;
  });
}

// The ends between which a trial was made, where both work and should hear each other.
struct Ends {
  const RailEnd* from = nullptr;
  const RailEnd* to = nullptr;
};
std::optional<Ends> ends_of(const ClusterView& view, const spec::SurveyedNode& node, const spec::PathProbe& path) {
  const RailEnd* from = view.find_rail(node.name, path.interface);
  if (!from) return std::nullopt;
  for (const std::size_t index : from->peers) {
    const RailEnd& to = view.rails[index];
    if (to.node->name == path.peer && are_joined(*from, to) && to.address->address == path.peer_address) {
      return Ends{from, &to};
    }
  }
  return std::nullopt;
}

// From outside it cannot be seen which end swallows a connection. The one that is called does as a rule; where only
// the caller drops packets at all, it is the caller.
const RailEnd& swallows_at(const Ends& ends) {
  const bool caller = ends.from->node->drops_packets == true && ends.to->node->drops_packets == false;
  return caller ? *ends.from : *ends.to;
}

// The end that swallows everything: nothing is answered, and one of the two drops packets.
const RailEnd* swallows_all_at(const spec::PathProbe& path, const Ends& ends) {
  if (path.small != false || path.connects == true) return nullptr;
  const bool caller = ends.from->node->drops_packets == true, called = ends.to->node->drops_packets == true;
  if (caller == called) return nullptr;
  return caller ? ends.from : ends.to;
}

// A port that was given the address of the other end's.
std::string same_mac_of(const Ends& ends) {
  if (ends.from->interface->mac.empty() || ends.from->interface->mac != ends.to->interface->mac) return "";
  return fmt::format("; both ends have the hardware address {}", ends.from->interface->mac);
}

std::string filters_of(const Ends& ends) {
  for (const RailEnd* end : {ends.to, ends.from}) {
    if (end->node->drops_packets == true) return fmt::format("; a packet filter on {} drops packets", end->node->name);
  }
  return "";
}

// How a firewall is told to let a rail's packets in.
std::string opening_of(const std::string& firewall, const std::string& interface) {
  if (firewall == "ufw") return fmt::format("'ufw allow in on {}'", interface);
  if (firewall == "firewalld") return fmt::format("'firewall-cmd --zone=trusted --add-interface={}'", interface);
  return "'nft list ruleset' shows the rule";
}

// Two links of one node that both reach nobody, although all four ends have a carrier: as where their cables were put
// into each other's place. Only where each neighbour has ports of its own.
std::string swapped_cables(const ClusterView& view, const std::vector<Ends>& silent, const Ends& one) {
  if (!view.topology() || !spec::is_ring_or_mesh(*view.topology())) return "";
  for (const Ends& other : silent) {
    for (const RailEnd* here : {one.from, one.to}) {
      const RailEnd* there = here == one.from ? one.to : one.from;
      for (const RailEnd* same : {other.from, other.to}) {
        const RailEnd* beyond = same == other.from ? other.to : other.from;
        if (same->node != here->node || same == here || beyond->node == there->node) continue;
        return fmt::format("the cables in {} and {} of {} may be swapped; ", std::min(here->name, same->name),
                           std::max(here->name, same->name), here->node->name);
      }
    }
  }
  return "";
}

using TrialVisitor = std::function<void(const spec::SurveyedNode&, const spec::PathProbe&, const Ends&)>;
void for_each_trial(const ClusterView& view, const TrialVisitor& visit) {
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    for (const spec::PathProbe& path : node.paths) {
      if (const auto ends = ends_of(view, node, path)) visit(node, path, *ends);
    }
  }
}

}  // namespace

AdviceList find_differing_mtus(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    const RailEnd* peer = mtu_witness(view, end);
    if (!peer) continue;
    list.push_back(
        {.node = end.node->name,
         .subject = end.name,
         .what = fmt::format("{} on {} has MTU {}, its other end on {} has {}", end.title(), end.node->name,
                             end.interface->mtu, peer->node->name, peer->interface->mtu),
         .evidence = fmt::format("{} on {}: {}; {} on {}: {}; wanted {}", end.name, end.node->name, end.interface->mtu,
                                 peer->name, peer->node->name, peer->interface->mtu, view.mtu_wanted()),
         .consequence = "TCP agrees on the smaller; RDMA writes end in retry errors (IBV_WC_RETRY_EXC_ERR), "
                        "and large datagrams vanish",
         .fix = fmt::format("'ip link set {} mtu {}' on {}; 'yoke link setup' makes it last", end.handle(),
                            view.mtu_wanted(), end.node->name),
         .rails = {&end, peer}});
  }
  return list;
}

AdviceList find_small_mtus(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    std::vector<std::string> names;
    int least = view.mtu_wanted();
    for (const RailEnd* end : view.rails_of(node)) {
      if (!has_mtu_to_evaluate(*end) || end->interface->mtu >= view.mtu_wanted() || differs_somewhere(view, *end))
        continue;
      names.push_back(end->name);
      least = std::min(least, end->interface->mtu);
    }
    if (names.empty()) continue;
    list.push_back(
        {.node = node.name,
         .subject = fmt::format("{}", fmt::join(names, ", ")),
         .what = fmt::format("the fast interfaces of {} have MTU {}", node.name, least),
         .evidence = fmt::format("{}: {}, {} wanted", fmt::join(names, ", "), least, view.mtu_wanted()),
         .consequence = "RoCE packets carry 1024 bytes instead of 4096: some percent of the rate, and more "
                        "work for the processor with TCP",
         .fix = view.facts.cabling
                    ? fmt::format("'yoke link setup' sets MTU {}, which the cluster file of 'yoke link discover -o "
                                  "cluster.yaml' asks for",
                                  view.mtu_wanted())
                    : fmt::format("set MTU {} at both ends: 'yoke link setup'", view.mtu_wanted())});
  }
  return list;
}

AdviceList find_blocked_jumbo_frames(const ClusterView& view) {
  AdviceList list;
  std::set<const RailEnd*> reported;
  for_each_trial(view, [&](const spec::SurveyedNode& node, const spec::PathProbe& path, const Ends& ends) {
    const bool allowed = ends.from->interface->mtu >= path.large_size && ends.to->interface->mtu >= path.large_size;
    if (path.small != true || path.large != false || !allowed || reported.contains(ends.to)) return;
    reported.insert(ends.from);  // the way back would be reported once more
    list.push_back(
        {.node = node.name,
         .subject = path.interface,
         .what = fmt::format("large frames do not pass {} between {} and {}", ends.from->title(), node.name, path.peer),
         .evidence = fmt::format("a packet of 84 bytes is answered, one of {} is not; both ends have MTU {}",
                                 path.large_size, ends.from->interface->mtu),
         .consequence = "connections open and then hang as soon as they carry data",
         .fix = fmt::format("something between has a smaller MTU: a switch's ports; without a switch a route with an "
                            "mtu ('ip route show') or a packet filter ('nft list ruleset') at either end{}",
                            filters_of(ends)),
         .rails = {ends.from, ends.to}});
  });
  return list;
}

AdviceList find_silent_rails(const ClusterView& view) {
  AdviceList list = find_rails_unheard(view);
  std::vector<Ends> silent;
  for_each_trial(view, [&](const spec::SurveyedNode&, const spec::PathProbe& path, const Ends& ends) {
    const bool is_reported = std::ranges::any_of(silent, [&](const Ends& other) { return other.from == ends.to; });
    if (path.small == false && path.connects != true && !is_reported) silent.push_back(ends);
  });
  for (const Ends& ends : silent) {
    const std::string& node = ends.from->node->name;
    const std::string& peer = ends.to->node->name;
    list.push_back(
        {.node = node,
         .subject = ends.from->name,
         .what = fmt::format("{} on {} does not reach its other end on {}", ends.from->title(), node, peer),
         .evidence = fmt::format("no answer from {} ({}), although both ends are up and in one network{}",
                                 yoke::to_string(ends.to->address->address), ends.to->name,
                                 same_mac_of(ends) + filters_of(ends)),
         .consequence = "this rail carries nothing",
         .fix = swapped_cables(view, silent, ends) +
                "'yoke link discover' shows which ports are cabled to each other: crossed cables, VLANs of a switch; "
                "if that is right, "
                "a firewall that drops all, or a pinned neighbour ('ip neigh show nud permanent') on either",
         .rails = {ends.from, ends.to}});
  }
  return list;
}

AdviceList find_firewalls(const ClusterView& view) {
  struct Blocked {
    std::vector<const RailEnd*> ends;
    std::string evidence;  // of the first
  };
  std::vector<std::pair<const spec::SurveyedNode*, Blocked>> blocked;
  const auto tell = [&](const RailEnd& end, const std::string& evidence) {
    auto found = std::ranges::find(blocked, end.node, [](const auto& pair) { return pair.first; });
    if (found == blocked.end()) found = blocked.insert(found, {end.node, {{}, evidence}});
    std::vector<const RailEnd*>& ends = found->second.ends;
    if (std::ranges::find(ends, &end) == ends.end()) ends.push_back(&end);
  };
  for_each_trial(view, [&](const spec::SurveyedNode& node, const spec::PathProbe& path, const Ends& ends) {
    if (goes_elsewhere(*ends.to, *ends.from)) return;  // where the answer goes elsewhere, it is lost on its way back
    if (const RailEnd* end = swallows_all_at(path, ends)) {
      tell(*end, fmt::format("no answer between {} and {} ({}), and a packet filter on {} drops packets", node.name,
                             path.peer, yoke::to_string(path.peer_address), end->node->name));
    } else if (path.small == true && path.connects == false) {
      tell(swallows_at(ends), fmt::format("{} on {} answers pings of {}, but not connections",
                                          yoke::to_string(path.peer_address), path.peer, node.name));
    }
  });
  // A filter that resets connections looks like a port that nobody serves, but for when somebody does.
  for (const spec::RailMeasurement& way :
       view.facts.measurement ? view.facts.measurement->rails : std::vector<spec::RailMeasurement>{}) {
    const RailEnd* end = refusing_end(view, way);
    if (end) tell(*end, fmt::format("while measuring, where yoke itself listened: {}", *way.failure));
  }
  AdviceList list;
  for (auto& [node, found] : blocked) {
    const std::string firewall = node->machine->firewall.value_or("");
    if (!firewall.empty()) found.evidence += fmt::format("; {} is active on {}", firewall, node->name);
    std::set<std::string> names, openings;
    for (const RailEnd* end : found.ends) {
      names.insert(end->name);
      openings.insert(opening_of(firewall, end->name));
    }
    list.push_back(
        {.node = node->name,
         .subject = found.ends.front()->name,
         .what = fmt::format("{} swallows or rejects what comes by {}", node->name, fmt::join(names, " and ")),
         .evidence = found.evidence,
         .consequence = "jobs wait for each other until they time out, or end at once",
         .fix = fmt::format("let everything pass on {}: {}", fmt::join(names, " and "), fmt::join(openings, ", ")),
         .rails = found.ends});
  }
  return list;
}

}  // namespace yoke::check
