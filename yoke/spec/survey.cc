#include "yoke/spec/survey.h"

#include <array>

#include "yoke/base/fields.h"

namespace yoke::spec {

constexpr auto enum_names(NodeFailureKind) {
  return std::array{std::pair{"asks", NodeFailureKind::kAsks}, std::pair{"unreachable", NodeFailureKind::kUnreachable},
                    std::pair{"other", NodeFailureKind::kOther}};
}

template <class Visitor>
void visit_fields(Visitor& visit, PathProbe& path) {
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
void visit_fields(Visitor& visit, RingProbe& far) {
  visit.required("peer", far.peer);
  visit.required("address", far.address);
  visit.optional("reached", far.reached);
  visit.optional("routed", far.routed);
  visit.optional("routes", far.routes);
}

template <class Visitor>
void visit_fields(Visitor& visit, NameLookup& name) {
  visit.required("name", name.name);
  visit.optional("addresses", name.addresses);
}

template <class Visitor>
void visit_fields(Visitor& visit, MemoryCanary& canary) {
  visit.optional("read", canary.read);
  visit.optional("taken", canary.taken);
  visit.optional("record", canary.record);
  visit.optional("record_date", canary.record_date);
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
  visit.optional("canary", node.canary);
  visit.optional("setup_files", node.setup_files);
}

template <class Visitor>
void visit_fields(Visitor& visit, Survey& facts) {
  visit.optional("cluster", facts.cluster);
  visit.required("nodes", facts.nodes);
  visit.optional("measurement", facts.measurement);
}

Document to_json(const Survey& facts) { return write_fields(facts); }
void from_json(const Document& document, Survey& facts) { read_fields(document, facts); }
Document to_json(const SurveyedNode& node) { return write_fields(node); }
void from_json(const Document& document, SurveyedNode& node) { read_fields(document, node); }

}  // namespace yoke::spec
