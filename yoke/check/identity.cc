// Whether the machines are those of the cluster file, and their rails' prefixes too: what is mistaken here makes
// nonsense of all other rules about links.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// Hardware addresses of ports, which no other machine has. Bridges and the like make theirs up.
std::vector<std::string> macs_of(const spec::Machine& machine) {
  std::vector<std::string> macs;
  for (const spec::NetworkInterface& interface : machine.interfaces) {
    if (interface.kind == spec::InterfaceKind::kEthernet && !interface.mac.empty()) macs.push_back(interface.mac);
  }
  return macs;
}

// One of those that both have, where they have most in common: a single port may be given another's.
std::optional<std::string> shared_mac(const spec::Machine& a, const spec::Machine& b) {
  const std::vector<std::string> here = macs_of(a), there = macs_of(b);
  std::vector<std::string> both;
  for (const std::string& mac : here) {
    if (std::find(there.begin(), there.end(), mac) != there.end()) both.push_back(mac);
  }
  if (both.empty() || 2 * both.size() < std::min(here.size(), there.size())) return std::nullopt;
  return both.front();
}

std::size_t count_held(const spec::Machine& machine, const spec::ClusterNode& place) {
  return static_cast<std::size_t>(std::count_if(place.rails.begin(), place.rails.end(), [&](const spec::Rail& rail) {
    return std::any_of(machine.interfaces.begin(), machine.interfaces.end(),
                       [&](const spec::NetworkInterface& interface) {
                         return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                                            [&](const Ipv4Prefix& own) { return own.address == rail.address.address; });
                       });
  }));
}

const spec::Machine* machine_of(const spec::Survey& facts, const std::string& name) {
  for (const spec::SurveyedNode& node : facts.nodes) {
    if (node.name == name && node.machine) return &*node.machine;
  }
  return nullptr;
}

// The node whose rails' addresses are all here, while its own machine, where it was reached, has none of them.
const spec::ClusterNode* owner_of_addresses(const spec::Survey& facts, const spec::SurveyedNode& node) {
  const spec::ClusterNode* own = nullptr;
  const spec::ClusterNode* owner = nullptr;
  for (const spec::ClusterNode& place : facts.cluster->nodes) {
    if (place.name == node.name) {
      own = &place;
      continue;
    }
    const spec::Machine* there = machine_of(facts, place.name);
    const bool all_here = !place.rails.empty() && count_held(*node.machine, place) == place.rails.size();
    if (all_here && (!there || count_held(*there, place) == 0)) owner = &place;
  }
  const bool is_itself = !own || own->rails.empty() || count_held(*node.machine, *own) > 0;
  return is_itself ? nullptr : owner;
}

std::string where_to_correct(const MistakenNode& found) {
  return fmt::format("correct the address of {} in the cluster file ('yoke link discover' writes one)",
                     found.node->name);
}

// Its nodes are processes of one machine, and meant to be.
bool is_plain_lab(const spec::Survey& facts) {
  if (!facts.cluster || !facts.cluster->lab) return false;
  return std::ranges::all_of(facts.cluster->nodes, [](const spec::ClusterNode& node) {
    return !node.rails.empty() && node.rails.front().interface == "lo";
  });
}

}  // namespace

std::vector<MistakenNode> find_mistaken(const spec::Survey& facts) {
  std::vector<MistakenNode> mistaken;
  if (is_plain_lab(facts)) return mistaken;
  for (const spec::SurveyedNode& node : facts.nodes) {
    if (!node.machine) continue;
    for (const spec::SurveyedNode* other = facts.nodes.data(); other != &node; ++other) {
      const auto mac = other->machine ? shared_mac(*other->machine, *node.machine) : std::nullopt;
      if (!mac) continue;
      mistaken.push_back({.node = &node,
                          .really = other->name,
                          .is_twice = true,
                          .evidence = fmt::format("both have the port {}; their host names are {} and {}", *mac,
                                                  other->machine->hostname, node.machine->hostname)});
      break;
    }
    const bool is_reported = !mistaken.empty() && mistaken.back().node == &node;
    const spec::ClusterNode* owner = facts.cluster && !is_reported ? owner_of_addresses(facts, node) : nullptr;
    if (!owner) continue;
    mistaken.push_back(
        {.node = &node,
         .really = owner->name,
         .is_twice = false,
         .evidence = fmt::format("it has {} and all other addresses of {}; its host name is {}",
                                 yoke::to_string(owner->rails.front().address), owner->name, node.machine->hostname)});
  }
  return mistaken;
}

AdviceList find_nodes_twice(const ClusterView& view) {
  AdviceList list;
  for (const MistakenNode& found : view.mistaken) {
    if (!found.is_twice) continue;
    list.push_back({.node = found.node->name,
                    .what = fmt::format("{} is the same machine as {}", found.node->name, found.really),
                    .evidence = found.evidence,
                    .consequence = "two ranks share one machine's memory and GPU, and nothing crosses a cable",
                    .fix = where_to_correct(found)});
  }
  return list;
}

AdviceList find_nodes_swapped(const ClusterView& view) {
  AdviceList list;
  for (const MistakenNode& found : view.mistaken) {
    if (found.is_twice) continue;
    list.push_back({.node = found.node->name,
                    .what = fmt::format("the machine at the address of {} is {}", found.node->name, found.really),
                    .evidence = found.evidence,
                    .consequence = "ranks start on other machines than their settings are for, and do not meet; "
                                   "'yoke link setup' would give both machines' addresses to both",
                    .fix = where_to_correct(found)});
  }
  return list;
}

AdviceList find_wrong_prefixes(const ClusterView& view) {
  AdviceList list;
  for (const RailEnd& end : view.rails) {
    if (!has_wrong_prefix(view, end)) continue;
    const int meant = end.wanted ? end.wanted->length : view.rails[end.peers.front()].address->length;
    list.push_back(
        {.node = end.node->name,
         .subject = end.name,
         .what = fmt::format("{} on {} has the prefix length {} instead of {}", end.title(), end.node->name,
                             end.address->length, meant),
         .evidence = fmt::format("{}; {} has /{}", yoke::to_string(*end.address),
                                 end.wanted ? "the cluster file" : "its other end", meant),
         .consequence = end.address->length < meant
                            ? "packets for other networks are sent by this rail, and vanish"
                            : "the other end may be outside of it: packets there go another way, or nowhere",
         .fix = fmt::format("'yoke link setup', or 'ip addr del {0} dev {2}; ip addr add {1} dev {2}' on {3}",
                            yoke::to_string(*end.address), yoke::to_string(Ipv4Prefix{end.address->address, meant}),
                            end.name, end.node->name),
         .rails = {&end}});
  }
  return list;
}

}  // namespace yoke::check
