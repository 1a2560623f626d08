#include "yoke/link/link_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/report/findings_text.h"
#include "yoke/report/table.h"

namespace yoke::link {
namespace {

constexpr int kDiscoverySchema = 1;

const FoundNode& node_at(const DiscoverResult& result, const spec::LinkEnd& end) {
  return result.nodes[static_cast<std::size_t>(end.node)];
}

// The address in the cluster file, which may be a proposal; without a file the one that is there.
std::string address_of(const DiscoverResult& result, const spec::LinkEnd& end) {
  if (result.discovery.cluster) {
    for (const spec::Rail& rail : result.discovery.cluster->nodes[static_cast<std::size_t>(end.node)].rails) {
      if (rail.interface == end.interface) return yoke::to_string(rail.address);
    }
    return "none";
  }
  const std::vector<Ipv4Prefix>& there = interface_at(result.nodes, end).addresses;
  return there.empty() ? "none" : yoke::to_string(there.front());
}

std::string nodes_text(const DiscoverResult& result) {
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "address"},
                                  {.header = "fast interfaces"},
                                  {.header = "machine", .fit = report::ColumnFit::kShrinks}}};
  for (const FoundNode& node : result.nodes) {
    const spec::Machine& machine = node.report.machine;
    const auto fast = spec::fast_interfaces(machine);
    const auto live = std::count_if(fast.begin(), fast.end(), [](const auto* one) { return one->carrier; });
    table.rows.push_back({node.access.name, node.access.address,
                          fmt::format("{} of {} with carrier", live, fast.size()),
                          machine.product.value_or(machine.os)});
  }
  return report::render_text(table);
}

std::string cables_text(const DiscoverResult& result) {
  report::Table table{
      .columns = {
          {.header = "rail"}, {.header = "from"}, {.header = "address"}, {.header = "to"}, {.header = "address"}}};
  const auto place = [&](const spec::LinkEnd& end) {
    return fmt::format("{} port {} {}", node_at(result, end).access.name, end.port, end.interface);
  };
  for (const spec::LinkSegment& segment : result.discovery.map.segments) {
    const spec::LinkEnd& a = segment.ends.front();
    const spec::LinkEnd& b = segment.ends.back();
    if (segment.ends.size() == 2) {
      const std::string rail = a.rail == b.rail ? a.rail : a.rail + "-" + b.rail;
      table.rows.push_back({rail, place(a), address_of(result, a), place(b), address_of(result, b)});
      continue;
    }
    for (const spec::LinkEnd& end : segment.ends) {
      table.rows.push_back({end.rail, place(end), address_of(result, end), "switch", ""});
    }
  }
  return table.rows.empty() ? "" : "\n" + render_text(table, report::for_output(report::kUnlimitedWidth));
}

std::string topology_text(const DiscoverResult& result) {
  const Discovery& found = result.discovery;
  if (!found.map.topology) return "";
  std::string text = "\nTopology: ";
  switch (found.cluster->fabric->topology) {
    case spec::Topology::kDirect:
      text += "a cable between two nodes";
      break;
    case spec::Topology::kRing:
      text += fmt::format("a ring of {} nodes", result.nodes.size());
      break;
    case spec::Topology::kMesh:
      text += fmt::format("a full mesh of {} nodes, each pair with a link of its own", result.nodes.size());
      break;
    case spec::Topology::kSwitch:
      text += fmt::format("{} nodes at a switch", result.nodes.size());
      break;
  }
  if (const auto name = switch_name(result.nodes)) text += fmt::format(" ({})", *name);
  text += result.source == spec::AdjacencySource::kBeacons
              ? ", as beacons show.\n"
              : ", inferred from addresses and LLDP: beacons could not be sent.\n";
  if (!found.adopted) return text + "Addresses: proposed; 'yoke link setup' gives them to the interfaces.\n";
  text += found.set_up_by.starts_with("hand")
              ? "Addresses: kept; they were set by hand or by another tool.\n"
              : fmt::format("Addresses: kept; they look like those of {}.\n", found.set_up_by);
  if (found.proposed.empty()) return text;
  std::vector<std::string> ends;
  for (const spec::LinkEnd& end : found.proposed) {
    ends.push_back(fmt::format("{} {} {}", node_at(result, end).access.name, end.interface, address_of(result, end)));
  }
  return text + fmt::format("Proposed for rails without an address: {}; 'yoke link setup' sets them.\n",
                            fmt::join(ends, ", "));
}

Document end_json(const DiscoverResult& result, const spec::LinkEnd& end) {
  return Document::map({{"node", Document::string(node_at(result, end).access.name)},
                        {"port", Document::number(static_cast<std::int64_t>(end.port))},
                        {"rail", Document::string(end.rail)},
                        {"interface", Document::string(end.interface)}});
}

Document interface_json(const spec::NetworkInterface& interface) {
  Document addresses = Document::list();
  for (const Ipv4Prefix& address : interface.addresses)
    addresses.items.push_back(Document::string(yoke::to_string(address)));
  return Document::map({{"name", Document::string(interface.name)},
                        {"port", Document::number(static_cast<std::int64_t>(*interface.port))},
                        {"rail", Document::string(*interface.rail)},
                        {"mac", Document::string(interface.mac)},
                        {"up", Document::boolean(interface.up)},
                        {"carrier", Document::boolean(interface.carrier)},
                        {"mtu", Document::number(static_cast<std::int64_t>(interface.mtu))},
                        {"addresses", std::move(addresses)}});
}

Document node_json(const FoundNode& node) {
  Document interfaces = Document::list();
  for (const spec::NetworkInterface* interface : spec::fast_interfaces(node.report.machine)) {
    interfaces.items.push_back(interface_json(*interface));
  }
  Document json = Document::map({{"name", Document::string(node.access.name)},
                                 {"address", Document::string(node.access.address)},
                                 {"hostname", Document::string(node.report.machine.hostname)},
                                 {"identity", Document::string(node.report.identity)}});
  if (node.report.machine.product) json.add("product", Document::string(*node.report.machine.product));
  json.add("interfaces", std::move(interfaces));
  return json;
}

}  // namespace

std::string discovery_text(const DiscoverResult& result, const std::vector<spec::Finding>& findings) {
  std::string text = nodes_text(result) + cables_text(result) + topology_text(result);
  if (!findings.empty()) text += "\n" + report::findings_text(findings);
  return text;
}

Document discovery_json(const DiscoverResult& result, const std::vector<spec::Finding>& findings) {
  const Discovery& found = result.discovery;
  Document nodes = Document::list();
  for (const FoundNode& node : result.nodes) nodes.items.push_back(node_json(node));
  Document segments = Document::list();
  for (const spec::LinkSegment& segment : found.map.segments) {
    Document ends = Document::list();
    for (const spec::LinkEnd& end : segment.ends) ends.items.push_back(end_json(result, end));
    segments.items.push_back(std::move(ends));
  }
  const bool by_beacons = result.source == spec::AdjacencySource::kBeacons;
  Document json = Document::map({{"schema", Document::number(static_cast<std::int64_t>(kDiscoverySchema))},
                                 {"source", Document::string(by_beacons ? "beacons" : "addresses")},
                                 {"nodes", std::move(nodes)},
                                 {"segments", std::move(segments)}});
  const auto topology = found.cluster ? std::optional(found.cluster->fabric->topology) : found.map.topology;
  json.add("topology", topology ? Document::string(std::string(spec::to_string(*topology))) : Document::null());
  if (const auto name = switch_name(result.nodes)) json.add("switch", Document::string(*name));
  json.add("adopted", Document::boolean(found.adopted));
  json.add("set_up_by", Document::string(found.set_up_by));
  json.add("findings", report::findings_json(findings));
  json.add("cluster", found.cluster ? spec::to_json(*found.cluster) : Document::null());
  return json;
}

}  // namespace yoke::link
