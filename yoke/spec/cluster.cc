#include "yoke/spec/cluster.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/base/yaml.h"
#include "yoke/spec/cluster_rules.h"
#include "yoke/spec/hostlist.h"

namespace yoke::spec {

template <class Visitor>
void visit_fields(Visitor& visit, Rail& rail) {
  visit.required("interface", rail.interface);
  visit.required("address", rail.address);
}

template <class Visitor>
void visit_fields(Visitor& visit, UnusedRail& rail) {
  visit.required("interface", rail.interface);
  visit.required("reason", rail.reason);
}

template <class Visitor>
void visit_fields(Visitor& visit, ClusterNode& node) {
  visit.required("name", node.name);
  visit.required("address", node.address);
  visit.optional("user", node.user);
  visit.optional("port", node.port);
  visit.optional("rails", node.rails);
  visit.renamed("halves", "rails");
  visit.optional("unused", node.unused);
}

template <class Visitor>
void visit_fields(Visitor& visit, Fabric& fabric) {
  visit.optional("topology", fabric.topology);
  visit.optional("mtu", fabric.mtu);
  visit.optional("subnets", fabric.subnets);
  visit.optional("rail_rate", fabric.rail_rate);
  visit.renamed("half_rate", "rail_rate");
  visit.optional("management_rate", fabric.management_rate);
}

template <class Visitor>
void visit_fields(Visitor& visit, Compute& compute) {
  visit.optional("memory_bandwidth", compute.memory_bandwidth);
}

template <class Visitor>
void visit_fields(Visitor& visit, Cluster& cluster) {
  visit.required("name", cluster.name);
  visit.optional("lab", cluster.lab);
  visit.required("nodes", cluster.nodes);
  visit.optional("hardware", cluster.hardware);
  visit.optional("fabric", cluster.fabric);
  visit.optional("compute", cluster.compute);
}

std::size_t subnet_count(Topology topology, std::size_t nodes, std::size_t rails_per_cable) {
  if (topology == Topology::kMesh) return nodes * (nodes - 1) / 2;
  return topology == Topology::kRing ? nodes * rails_per_cable : rails_per_cable;
}

Cluster first_nodes(Cluster cluster, std::size_t count) {
  if (count >= cluster.nodes.size()) return cluster;
  cluster.nodes.resize(count);
  if (!cluster.fabric || !is_ring_or_mesh(cluster.fabric->topology)) return cluster;
  cluster.fabric->subnets.clear();  // they are those of all cables
  cluster.fabric->topology = count <= 2 ? Topology::kDirect : Topology::kRing;
  return cluster;
}

std::string_view to_string(Topology topology) {
  for (const auto& [name, value] : enum_names(Topology{})) {
    if (value == topology) return name;
  }
  return "unknown";
}

namespace {

std::size_t count_values(const Document& document) {
  std::size_t count = 1;
  for (const Document& item : document.items) count += count_values(item);
  for (const auto& [key, value] : document.fields) count += count_values(value);
  return count;
}

// A node of this name and address, with everything else as given.
Document node_document(const Document& given, const std::string& name, const std::string& address) {
  Document node = given.kind == Document::Kind::kMap ? given : Document::map();
  node.where = given.where;
  std::erase_if(node.fields, [](const auto& field) { return field.first == "name" || field.first == "address"; });
  const auto text = [&](const std::string& value) {
    Document field = Document::string(value);
    field.where = given.where;
    return field;
  };
  node.fields.insert(node.fields.begin(), {{"name", text(name)}, {"address", text(address)}});
  return node;
}

// An entry whose name is a list of hosts (spec/hostlist.h) is a node for each; a mere name is its own address.
void add_nodes(const Document& entry, Document& nodes) {
  const bool is_map = entry.kind == Document::Kind::kMap;
  const Document* const name = is_map ? entry.find("name") : &entry;
  const Document* const address = is_map ? entry.find("address") : nullptr;
  if (!name || !is_text(*name) || (is_map && name->text.find('[') == std::string::npos)) {
    nodes.items.push_back(entry);  // one node, or what the reader of nodes refuses
    return;
  }
  const std::vector<std::string> names = expand_hostlist(name->text);
  const std::vector<std::string> addresses = address && is_text(*address) ? expand_hostlist(address->text) : names;
  if (addresses.size() != names.size()) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: {} names and {} addresses", entry.where, names.size(), addresses.size()),
                "give as many addresses as names, or none where the names resolve");
  }
  // Each of them gets a copy of the entry.
  if (nodes.items.size() + names.size() > limits::kHosts ||
      count_values(entry) * names.size() > limits::kExpandedValues) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: this stands for too many nodes", entry.where),
                "write rails and unused rails at nodes of their own");
  }
  for (std::size_t i = 0; i < names.size(); ++i) nodes.items.push_back(node_document(entry, names[i], addresses[i]));
}

Document with_all_nodes(Document document) {
  for (auto& [key, value] : document.fields) {
    if (key != "nodes" || document.kind != Document::Kind::kMap) continue;
    Document nodes = Document::list();
    nodes.where = value.where;
    if (is_text(value) && is_hostlist(value.text)) {
      add_nodes(value, nodes);
    } else if (value.kind == Document::Kind::kList) {
      for (const Document& entry : value.items) add_nodes(entry, nodes);
    } else {
      continue;
    }
    value = std::move(nodes);
  }
  return document;
}

}  // namespace

void from_json(const Document& document, Cluster& cluster) {
  const Document expanded = with_all_nodes(document);
  read_fields(expanded, cluster);
  check_cluster_rules(cluster, expanded);
}

namespace {

// A key without a value is a line that somebody forgot to finish: taken as absent it would mean the default.
void refuse_empty_values(const Document& document) {
  for (const Document& item : document.items) refuse_empty_values(item);
  for (const auto& [key, value] : document.fields) {
    if (value.kind == Document::Kind::kNull) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: '{}' has no value", value.where, printable(key, 60)),
                  "give it one, or remove the line");
    }
    refuse_empty_values(value);
  }
}

}  // namespace

Cluster parse_cluster(std::string_view yaml, std::string_view source) {
  const Document document = parse_yaml(yaml, source);
  if (document.kind == Document::Kind::kNull) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is empty", source),
                "docs/cluster-file.md shows a file to start from");
  }
  Cluster cluster = from_json<Cluster>(document);
  refuse_empty_values(document);
  return cluster;
}

Cluster load_cluster(const std::filesystem::path& file) { return parse_cluster(read_file(file), file.native()); }

Document to_json(const Cluster& cluster) { return write_fields(cluster); }
std::string print_cluster(const Cluster& cluster) { return print_yaml(to_document(cluster)); }

}  // namespace yoke::spec
