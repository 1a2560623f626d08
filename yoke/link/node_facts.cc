#include "yoke/link/node_facts.h"

#include <algorithm>
#include <thread>

#include "yoke/base/fields.h"
#include "yoke/base/process.h"
#include "yoke/link/discover_node.h"
#include "yoke/probe/available_memory.h"

namespace yoke::link {

template <class Visitor>
void visit_fields(Visitor& visit, RailQuestion& question) {
  visit.required("place", question.place);
  visit.required("peer", question.peer);
}

template <class Visitor>
void visit_fields(Visitor& visit, RailFacts& facts) {
  visit.optional("interface", facts.interface);
  visit.optional("route", facts.route);
  visit.optional("rdma", facts.rdma);
}

template <class Visitor>
void visit_fields(Visitor& visit, CabledRail& rail) {
  visit.required("interface", rail.interface);
  visit.required("port", rail.port);
  visit.required("rail", rail.rail);
}

template <class Visitor>
void visit_fields(Visitor& visit, NodeFacts& facts) {
  visit.optional("rails", facts.rails);
  visit.optional("cabled", facts.cabled);
  visit.required("verbs", facts.verbs);
  visit.required("perftest", facts.perftest);
  visit.required("cores", facts.cores);
  visit.optional("memory_total", facts.memory_total);
  visit.optional("memory_available", facts.memory_available);
}

Bytes memory_wanted(const NodeFacts& facts) {
  using namespace literals;
  constexpr Bytes kMax = 256_MiB;
  return facts.memory_total ? std::min(kMax, Bytes{facts.memory_total->value / 2}) : kMax;
}

NodeFacts inspect_node(const std::vector<RailQuestion>& questions) {
  const DiskTree tree;
  const std::vector<LinkInterface> interfaces = read_link_interfaces();
  NodeFacts facts{.rails = {},
                  .cabled = {},
                  .verbs = !tree.list("/dev/infiniband").empty(),
                  .perftest = is_installed("ib_write_bw") && is_installed("ib_write_lat"),
                  .cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                  .memory_total = probe::total_memory(tree),
                  .memory_available = probe::available_memory(tree)};
  facts.cabled = cabled_rails(inspect_interfaces({}));
  for (const RailQuestion& question : questions) {
    RailFacts rail;
    if (const LinkInterface* found = find_link_interface(interfaces, question.place.interface)) rail.interface = *found;
    rail.route = read_route_interface(question.peer, question.place.address);
    if (const auto address = parse_ipv4(question.place.address)) {
      rail.rdma = find_rdma_port(tree, question.place.interface, *address);
    }
    facts.rails.push_back(std::move(rail));
  }
  return facts;
}

Document to_json(const RailQuestion& question) { return write_fields(question); }
void from_json(const Document& document, RailQuestion& question) { read_fields(document, question); }
Document to_json(const NodeFacts& facts) { return write_fields(facts); }
void from_json(const Document& document, NodeFacts& facts) { read_fields(document, facts); }

}  // namespace yoke::link
