#include "yoke/spec/cluster.h"

#include <fmt/format.h>

#include "yoke/base/files.h"
#include "yoke/base/ip_fields.h"
#include "yoke/base/yaml.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, Half& half) {
  visit.required("interface", half.interface);
  visit.required("address", half.address);
}

template <class Visitor>
void visit_fields(Visitor& visit, ClusterNode& node) {
  visit.required("name", node.name);
  visit.required("address", node.address);
  visit.optional("user", node.user);
  visit.optional("port", node.port);
  visit.optional("halves", node.halves);
}

template <class Visitor>
void visit_fields(Visitor& visit, Fabric& fabric) {
  visit.optional("topology", fabric.topology);
  visit.optional("mtu", fabric.mtu);
  visit.optional("subnets", fabric.subnets);
  visit.optional("half_rate", fabric.half_rate);
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

std::string_view to_string(Topology topology) {
  for (const auto& [name, value] : enum_names(Topology{})) {
    if (value == topology) return name;
  }
  return "unknown";
}

Cluster cluster_from_json(const Document& document) {
  Cluster cluster = read_fields<Cluster>(document);
  check_cluster_rules(cluster, document);
  return cluster;
}

Cluster parse_cluster(std::string_view yaml, std::string_view source) {
  const Document document = parse_yaml(yaml, source);
  if (document.kind == Document::Kind::kNull) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is empty", source),
                "docs/cluster-file.md shows a file to start from");
  }
  return cluster_from_json(document);
}

Cluster load_cluster(const std::filesystem::path& file) { return parse_cluster(read_file(file), file.native()); }

Document to_json(const Cluster& cluster) { return write_fields(cluster); }
std::string print_cluster(const Cluster& cluster) { return print_yaml(to_document(cluster)); }

}  // namespace yoke
