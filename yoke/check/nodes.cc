// Nodes that cannot be looked at, and names and addresses that lead elsewhere.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

AdviceList failures_of(const ClusterView& view, spec::NodeFailureKind kind, std::string_view what,
                       std::string_view consequence) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.failure || node.failure->kind != kind) continue;
    list.push_back({.node = node.name,
                    .subject = {},
                    .what = fmt::format(fmt::runtime(what), node.name),
                    .evidence = node.failure->message,
                    .consequence = std::string(consequence),
                    .fix = node.failure->hint.empty() ? "'yoke cluster reach' shows more" : node.failure->hint});
  }
  return list;
}

// An address of the cluster file with the key that it stands behind.
struct NamedAddress {
  std::string key;
  Ipv4 address;
};

std::vector<NamedAddress> addresses_in_file(const spec::ClusterNode& place) {
  std::vector<NamedAddress> all;
  if (const auto address = parse_ipv4(place.address)) all.push_back({"address", *address});
  for (const spec::Rail& rail : place.rails) all.push_back({"rails", rail.address.address});
  return all;
}

const spec::NetworkInterface* holder_of(const spec::Machine& machine, Ipv4 address) {
  for (const spec::NetworkInterface& interface : machine.interfaces) {
    for (const Ipv4Prefix& own : interface.addresses) {
      if (own.address == address) return &interface;
    }
  }
  return nullptr;
}

struct Held {
  const spec::SurveyedNode* node;
  NamedAddress address;
  const spec::NetworkInterface* interface;
};

std::vector<Held> held_addresses(const ClusterView& view) {
  std::vector<Held> held;
  if (!view.facts.cluster) return held;
  for (const spec::ClusterNode& place : view.facts.cluster->nodes) {
    const spec::SurveyedNode* node = view.find_node(place.name);
    if (!node || !node->machine) continue;
    for (const NamedAddress& address : addresses_in_file(place)) {
      if (const spec::NetworkInterface* interface = holder_of(*node->machine, address.address)) {
        held.push_back({node, address, interface});
      }
    }
  }
  return held;
}

bool is_loopback(Ipv4 address) { return (address.value >> 24U) == 127; }

}  // namespace

AdviceList find_nodes_asking(const ClusterView& view) {
  return failures_of(view, spec::NodeFailureKind::kAsks, "ssh to {} asks a question",
                     "nothing can be started there without somebody at the keyboard, and it was not checked");
}

AdviceList find_nodes_unreachable(const ClusterView& view) {
  return failures_of(view, spec::NodeFailureKind::kUnreachable, "{} does not answer", "it was not checked");
}

AdviceList find_nodes_unread(const ClusterView& view) {
  return failures_of(view, spec::NodeFailureKind::kOther, "the facts of {} could not be read", "it was not checked");
}

AdviceList find_wifi_addresses(const ClusterView& view) {
  AdviceList list;
  for (const Held& held : held_addresses(view)) {
    if (held.interface->kind != spec::InterfaceKind::kWifi) continue;
    list.push_back(
        {.node = held.node->name,
         .subject = held.interface->name,
         .what = fmt::format("the cluster file reaches {} over Wi-Fi", held.node->name),
         .evidence = fmt::format("{} ('{}' in the file) belongs to {}", yoke::to_string(held.address.address),
                                 held.address.key, held.interface->name),
         .consequence = "slow, and lost whenever the Wi-Fi is; names from mDNS usually lead here",
         .fix = "write the wired port's address into the cluster file"});
  }
  return list;
}

AdviceList find_bridge_addresses(const ClusterView& view) {
  AdviceList list;
  for (const Held& held : held_addresses(view)) {
    if (!is_container_bridge(*held.interface)) continue;
    list.push_back(
        {.node = held.node->name,
         .subject = held.interface->name,
         .what = fmt::format("the cluster file gives {} the address of a container bridge", held.node->name),
         .evidence = fmt::format("{} ('{}' in the file) belongs to {}, and every machine has such a one",
                                 yoke::to_string(held.address.address), held.address.key, held.interface->name),
         .consequence = "each node then talks to itself; mpirun hangs without a word",
         .fix = "write the wired port's address into the cluster file"});
  }
  return list;
}

namespace {

// The cluster's nodes have each address once, but for loopback and the bridges of containers.
bool is_of_another(const ClusterView& view, const spec::SurveyedNode& node, Ipv4 address) {
  if (is_loopback(address) || holder_of(*node.machine, address)) return false;
  return std::any_of(view.facts.nodes.begin(), view.facts.nodes.end(), [&](const spec::SurveyedNode& other) {
    return &other != &node && other.machine && holder_of(*other.machine, address);
  });
}

}  // namespace

AdviceList find_wrong_names(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    for (const spec::NameLookup& trial : node.names) {
      const spec::SurveyedNode* meant = view.find_node(trial.name);
      if (!meant || !meant->machine || trial.addresses.empty()) continue;
      if (view.is_mistaken(*meant)) continue;  // the name may well be right
      const bool found =
          meant == &node || std::any_of(trial.addresses.begin(), trial.addresses.end(), [&](Ipv4 address) {
            return !is_loopback(address) && holder_of(*meant->machine, address);
          });
      // Programs take the first.
      if (found && !is_of_another(view, *meant, trial.addresses.front())) continue;
      std::vector<std::string> addresses;
      for (const Ipv4 address : trial.addresses) addresses.push_back(yoke::to_string(address));
      list.push_back({.node = node.name,
                      .subject = trial.name,
                      .what = fmt::format("on {} the name {} leads to another machine", node.name, trial.name),
                      .evidence = fmt::format("it resolves to {}, and {} does not have {}", fmt::join(addresses, ", "),
                                              trial.name, addresses.front()),
                      .consequence = "launchers that use names start ranks on the wrong machine, or wait for ever",
                      .fix = fmt::format("correct {} in /etc/hosts on {}", trial.name, node.name)});
    }
  }
  return list;
}

}  // namespace yoke::check
