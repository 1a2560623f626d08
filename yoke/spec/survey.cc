#include "yoke/spec/survey.h"

#include <array>

#include "yoke/base/fields.h"
#include "yoke/base/ip_fields.h"

namespace yoke {

// These have their own functions, whose fields are described beside them.
inline void read_field(const Document& document, Machine& value) { value = machine_from_json(document); }
inline void write_field(Document& document, const Machine& value) { document = to_json(value); }
inline void read_field(const Document& document, Cluster& value) { value = cluster_from_json(document); }
inline void write_field(Document& document, const Cluster& value) { document = to_json(value); }
inline void read_field(const Document& document, Measurement& value) { value = measurement_from_json(document); }
inline void write_field(Document& document, const Measurement& value) { document = to_json(value); }

constexpr auto enum_names(NodeFailureKind) {
  return std::array{std::pair{"asks", NodeFailureKind::kAsks}, std::pair{"unreachable", NodeFailureKind::kUnreachable},
                    std::pair{"other", NodeFailureKind::kOther}};
}

template <class Visitor>
void visit_fields(Visitor& visit, PathTrial& path) {
  visit.required("interface", path.interface);
  visit.required("peer", path.peer);
  visit.required("peer_address", path.peer_address);
  visit.required("large_size", path.large_size);
  visit.optional("small", path.small);
  visit.optional("large", path.large);
  visit.optional("connects", path.connects);
  visit.optional("routed", path.routed);
  visit.optional("routes", path.routes);
}

template <class Visitor>
void visit_fields(Visitor& visit, FarTrial& far) {
  visit.required("peer", far.peer);
  visit.required("address", far.address);
  visit.optional("reached", far.reached);
  visit.optional("routed", far.routed);
  visit.optional("routes", far.routes);
}

template <class Visitor>
void visit_fields(Visitor& visit, NameTrial& name) {
  visit.required("name", name.name);
  visit.optional("addresses", name.addresses);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeFailure& failure) {
  visit.required("kind", failure.kind);
  visit.required("message", failure.message);
  visit.optional("hint", failure.hint);
}

template <class Visitor>
void visit_fields(Visitor& visit, SurveyedNode& node) {
  visit.required("name", node.name);
  visit.optional("machine", node.machine);
  visit.optional("failure", node.failure);
  visit.optional("paths", node.paths);
  visit.optional("far", node.far);
  visit.optional("ring_settings", node.ring_settings);
  visit.optional("names", node.names);
  visit.optional("forward_policy", node.forward_policy);
  visit.optional("forward_accepts", node.forward_accepts);
  visit.optional("forward_drop", node.forward_drop);
  visit.optional("forward_exceptions", node.forward_exceptions);
  visit.optional("drops_packets", node.drops_packets);
  visit.optional("clock_ahead", node.clock_ahead);
}

template <class Visitor>
void visit_fields(Visitor& visit, Survey& facts) {
  visit.optional("cluster", facts.cluster);
  visit.required("nodes", facts.nodes);
  visit.optional("measurement", facts.measurement);
}

Document to_json(const Survey& facts) { return write_fields(facts); }
Survey survey_from_json(const Document& document) { return read_fields<Survey>(document); }
Document to_json(const SurveyedNode& node) { return write_fields(node); }
SurveyedNode surveyed_node_from_json(const Document& document) { return read_fields<SurveyedNode>(document); }

}  // namespace yoke
