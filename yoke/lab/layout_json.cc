// The layout's fields, for lab.json.
#include "yoke/base/ip_fields.h"
#include "yoke/lab/layout.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, LabInterface& interface) {
  visit.required("name", interface.name);
  visit.required("mac", interface.mac);
  visit.required("port", interface.port);
  visit.required("half", interface.half);
  visit.optional("address", interface.address);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabRoute& route) {
  visit.required("to", route.to);
  visit.required("via", route.via);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabNode& node) {
  visit.required("number", node.number);
  visit.required("name", node.name);
  visit.required("management", node.management);
  visit.optional("interfaces", node.interfaces);
  visit.optional("routes", node.routes);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabCable& cable) {
  visit.required("node_a", cable.node_a);
  visit.required("interface_a", cable.interface_a);
  visit.required("node_b", cable.node_b);
  visit.required("interface_b", cable.interface_b);
}

template <class Visitor>
void visit_fields(Visitor& visit, LabLayout& layout) {
  visit.required("name", layout.name);
  visit.required("hardware", layout.hardware);
  visit.required("topology", layout.topology);
  visit.optional("half_rate", layout.half_rate);
  visit.required("management_rate", layout.management_rate);
  visit.required("management_interface", layout.management_interface);
  visit.required("memory", layout.memory);
  visit.required("bare", layout.bare);
  visit.optional("plain", layout.plain);
  visit.optional("ssh_port", layout.ssh_port);
  visit.required("nodes", layout.nodes);
  visit.optional("cables", layout.cables);
  visit.optional("subnets", layout.subnets);
}

Document to_json(const LabLayout& layout) { return to_document(layout); }
LabLayout lab_layout_from_json(const Document& document) { return from_document<LabLayout>(document); }

}  // namespace yoke
