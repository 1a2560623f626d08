// Cables: which ports they join, how many there are, and what their modules say of themselves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "yoke/check/rules.h"
#include "yoke/spec/fabric.h"
#include "yoke/spec/hardware_facts.h"

namespace yoke::check {
namespace {

const std::string& name_at(const ClusterView& view, int node) {
  return view.facts.nodes[static_cast<std::size_t>(node)].name;
}

// The ports that segments of two ends join, by pair of nodes. Around a ring and behind a switch other ports are right.
using PortPairs = std::map<std::pair<int, int>, std::set<std::pair<int, int>>>;
PortPairs joined_ports(const ClusterView& view) {
  PortPairs pairs;
  if (view.facts.nodes.size() != 2) return pairs;
  for (const spec::LinkSegment& segment : view.facts.cabling->segments) {
    const spec::LinkEnd& a = segment.ends.front();
    const spec::LinkEnd& b = segment.ends.back();
    if (segment.ends.size() == 2 && a.node != b.node) pairs[{a.node, b.node}].insert({a.port, b.port});
  }
  return pairs;
}

// How many rails' worth both machines carry; nothing where one is not in the catalogue.
std::optional<double> rails_carried(const ClusterView& view, const std::pair<int, int>& nodes) {
  double least = 0;
  for (const int node : {nodes.first, nodes.second}) {
    const auto& machine = view.facts.nodes[static_cast<std::size_t>(node)].machine;
    const spec::Hardware* hardware = machine ? hardware_of(*machine) : nullptr;
    if (!hardware) return std::nullopt;
    const double rails = spec::rails_of_nic(*hardware);
    least = least == 0 ? rails : std::min(least, rails);
  }
  return least;
}

std::size_t segments_between(const ClusterView& view, const std::pair<int, int>& nodes) {
  return static_cast<std::size_t>(std::ranges::count_if(
      view.facts.cabling->segments,
      [&](const spec::LinkSegment& segment) { return segment.joins(nodes.first) && segment.joins(nodes.second); }));
}

bool is_approved(const spec::HardwareFacts& facts, const spec::CableModule& module) {
  return std::ranges::any_of(facts.cables, [&](const spec::ApprovedCable& cable) {
    return cable.part.find(module.part_number) != std::string_view::npos;
  });
}

std::string length_text(const spec::CableModule& module) {
  return module.length_m ? fmt::format(", {:g} m", *module.length_m) : "";
}

}  // namespace

AdviceList find_crossed_ports(const ClusterView& view) {
  AdviceList list;
  for (const auto& [nodes, ports] : joined_ports(view)) {
    for (const auto& [a, b] : ports) {
      if (a == b) continue;
      list.push_back({.node = name_at(view, nodes.second),
                      .subject = fmt::format("port {}", b),
                      .what = fmt::format("port {} of {} is joined to port {} of {}", a, name_at(view, nodes.first), b,
                                          name_at(view, nodes.second)),
                      .evidence = "beacons show which port hears which",
                      .consequence = "it works, but the interfaces of the two nodes have different names: guides and "
                                     "settings that name one interface for both fail on one of them",
                      .fix = fmt::format("move the cable to port {} of {}, or keep it and use the cluster file's names",
                                         a, name_at(view, nodes.second))});
    }
  }
  return list;
}

AdviceList find_extra_cables(const ClusterView& view) {
  AdviceList list;
  for (const auto& [nodes, ports] : joined_ports(view)) {
    const auto carried = rails_carried(view, nodes);
    const std::size_t rails = segments_between(view, nodes);
    if (ports.size() < 2 || !carried || static_cast<double>(rails) <= *carried) continue;
    list.push_back({.what = fmt::format("{} cables join {} and {}, but their NICs carry no more than one cable does",
                                        ports.size(), name_at(view, nodes.first), name_at(view, nodes.second)),
                    .evidence = fmt::format(
                        "{} rails are joined, and a NIC carries {:g} rails' worth in each direction", rails, *carried),
                    .consequence = "the second cable brings nothing, and each further rail takes a subnet and a pin",
                    .fix = "unplug one cable, and keep the other port free for a ring of three"});
  }
  return list;
}

AdviceList find_unlisted_cables(const ClusterView& view) {
  AdviceList list;
  if (view.has_split_ports()) return list;  // the list has cables for whole ports only
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const spec::Hardware* hardware = node.machine ? hardware_of(*node.machine) : nullptr;
    const spec::HardwareFacts* facts = hardware ? spec::find_hardware_facts(hardware->name) : nullptr;
    if (!facts || facts->cables.empty()) continue;
    std::set<int> reported;  // both rails of a port have one module
    for (const spec::NetworkInterface* interface : spec::fabric_interfaces(*node.machine)) {
      const auto& module = interface->module;
      if (!module || module->part_number.empty() || is_approved(*facts, *module)) continue;
      if (!reported.insert(interface->port.value_or(0)).second) continue;
      std::vector<std::string_view> parts;
      for (const spec::ApprovedCable& cable : facts->cables) parts.push_back(cable.part);
      list.push_back(
          {.node = node.name,
           .subject = fmt::format("port {}", interface->port.value_or(0)),
           .what = fmt::format("the cable in port {} of {} is {} {}, which is not on the list of approved cables",
                               interface->port.value_or(0), node.name, module->vendor, module->part_number),
           .evidence = fmt::format("its module reports: {}, {}{}", module->form, module->medium, length_text(*module)),
           .consequence = "others often work too; where a port stays down or slow, this is the first thing to change",
           .fix = fmt::format("nothing while the rates are right ('yoke link test'); approved are {}",
                              fmt::join(parts, "; "))});
    }
  }
  return list;
}

}  // namespace yoke::check
