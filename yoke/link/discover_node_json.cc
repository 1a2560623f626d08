// A node's report and what it is asked, as JSON.
#include "yoke/base/ip_fields.h"
#include "yoke/link/beacon_fields.h"
#include "yoke/link/discover_node.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, HeardBeacon& heard) {
  visit.required("interface", heard.interface);
  visit.required("beacon", heard.beacon);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeQuestion& question) {
  visit.required("time", question.time);
  visit.optional("address", question.address);
}

namespace {

// Machine and LldpNeighbour describe their fields in files of their own. Read and written here as types of this file
// only: a second description of the same type would be another template of the same name, and the linker keeps one.
struct ReportedMachine {
  Machine value;
};
void read_field(const Document& document, ReportedMachine& machine) { machine.value = machine_from_json(document); }
void write_field(Document& document, const ReportedMachine& machine) { document = to_json(machine.value); }

struct ReportedLldp {
  std::vector<LldpNeighbour> value;
};
void read_field(const Document& document, ReportedLldp& lldp) { lldp.value = lldp_neighbours_from_json(document); }
void write_field(Document& document, const ReportedLldp& lldp) { document = to_json(lldp.value); }

struct ReportFields {
  NodeReport rest;
  ReportedMachine machine;
  ReportedLldp lldp;
};

template <class Visitor>
void visit_fields(Visitor& visit, ReportFields& report) {
  visit.required("identity", report.rest.identity);
  visit.required("version", report.rest.version);
  visit.required("machine", report.machine);
  visit.optional("heard", report.rest.heard);
  visit.optional("lldp", report.lldp);
  visit.optional("netplan", report.rest.netplan);
  visit.optional("beacon_problem", report.rest.beacon_problem);
}

}  // namespace

Document to_json(const NodeReport& report) {
  return to_document(ReportFields{report, {report.machine}, {report.lldp}});
}

NodeReport node_report_from_json(const Document& document) {
  ReportFields fields = from_document<ReportFields>(document);
  fields.rest.machine = std::move(fields.machine.value);
  fields.rest.lldp = std::move(fields.lldp.value);
  return std::move(fields.rest);
}

Document to_json(const NodeQuestion& question) { return to_document(question); }
NodeQuestion node_question_from_json(const Document& document) { return from_document<NodeQuestion>(document); }

}  // namespace yoke
