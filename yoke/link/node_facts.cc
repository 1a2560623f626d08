#include "yoke/link/node_facts.h"

#include <algorithm>
#include <thread>

#include "yoke/base/fields.h"
#include "yoke/base/process.h"
#include "yoke/link/link_fields.h"
#include "yoke/probe/available_memory.h"

namespace yoke {

// These have their own functions, whose fields are described beside them.
inline void read_field(const Document& document, LinkInterface& value) { value = link_interface_from_json(document); }
inline void write_field(Document& document, const LinkInterface& value) { document = to_json(value); }
inline void read_field(const Document& document, RdmaPort& value) { value = rdma_port_from_json(document); }
inline void write_field(Document& document, const RdmaPort& value) { document = to_json(value); }

template <class Visitor>
void visit_fields(Visitor& visit, HalfQuestion& question) {
  visit.required("place", question.place);
  visit.required("peer", question.peer);
}

template <class Visitor>
void visit_fields(Visitor& visit, HalfFacts& facts) {
  visit.optional("interface", facts.interface);
  visit.optional("route", facts.route);
  visit.optional("rdma", facts.rdma);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeFacts& facts) {
  visit.optional("halves", facts.halves);
  visit.required("verbs", facts.verbs);
  visit.required("perftest", facts.perftest);
  visit.required("cores", facts.cores);
  visit.optional("memory_total", facts.memory_total);
  visit.optional("memory_available", facts.memory_available);
}

Bytes memory_wanted(const NodeFacts& facts) {
  using namespace literals;
  constexpr Bytes kMost = 256_MiB;
  return facts.memory_total ? std::min(kMost, Bytes{facts.memory_total->value / 2}) : kMost;
}

NodeFacts look_at_node(const std::vector<HalfQuestion>& questions) {
  const DiskTree tree;
  const std::vector<LinkInterface> interfaces = read_link_interfaces();
  NodeFacts facts{.verbs = !tree.list("/dev/infiniband").empty(),
                  .perftest = is_installed("ib_write_bw") && is_installed("ib_write_lat"),
                  .cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                  .memory_total = total_memory(tree),
                  .memory_available = available_memory(tree)};
  for (const HalfQuestion& question : questions) {
    HalfFacts half;
    if (const LinkInterface* found = find_link_interface(interfaces, question.place.interface)) half.interface = *found;
    half.route = read_route_interface(question.peer, question.place.address);
    if (const auto address = parse_ipv4(question.place.address)) {
      half.rdma = find_rdma_port(tree, question.place.interface, *address);
    }
    facts.halves.push_back(std::move(half));
  }
  return facts;
}

Document to_json(const std::vector<HalfQuestion>& questions) { return to_document(questions); }
std::vector<HalfQuestion> half_questions_from_json(const Document& document) {
  return from_document<std::vector<HalfQuestion>>(document);
}
Document to_json(const NodeFacts& facts) { return to_document(facts); }
NodeFacts node_facts_from_json(const Document& document) { return from_document<NodeFacts>(document); }

}  // namespace yoke
