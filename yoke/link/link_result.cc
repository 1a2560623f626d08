#include "yoke/link/link_result.h"

#include "yoke/base/fields.h"

namespace yoke::link {

namespace {

constexpr int kSchema = 1;

Document to_document_of(const RailRate& rate) {
  Document document = Document::map({{"rail", Document::string(rate.rail)},
                                     {"from", Document::string(rate.from)},
                                     {"to", Document::string(rate.to)},
                                     {"rate", to_document(rate.rate)},
                                     {"retransmits", Document::number(rate.retransmits)}});
  if (rate.again) document.add("again", to_document(*rate.again));
  return document;
}

template <class Item, class Make>
Document list_of(const std::vector<Item>& items, const Make& make) {
  Document list = Document::list();
  for (const Item& item : items) list.items.push_back(make(item));
  return list;
}

Document to_document_of(const LinkPhase& phase) {
  return Document::map({{"kind", to_document(phase.kind)},
                        {"rates", list_of(phase.rates, [](const RailRate& rate) { return to_document_of(rate); })},
                        {"cores", list_of(phase.loads, [](const NodeLoad& load) {
                           return Document::map({{"node", Document::string(load.node)},
                                                 {"used", Document::number(load.cores)},
                                                 {"taken", Document::number(load.taken)}});
                         })}});
}

Document end_document(const RailFacts& facts) {
  Document end = Document::map();
  if (facts.interface) end.add("interface", to_json(*facts.interface));
  if (facts.route) end.add("route", Document::string(*facts.route));
  if (facts.rdma) end.add("rdma", to_json(*facts.rdma));
  return end;
}

Document to_document_of(const PairResult& pair) {
  Document document = Document::map({{"a", Document::string(pair.a)},
                                     {"b", Document::string(pair.b)},
                                     {"transport", Document::string(pair.transport)},
                                     {"transport_reason", Document::string(pair.transport_reason)},
                                     {"streams", Document::number(std::int64_t{pair.streams})}});
  document.add("rails", list_of(pair.rails, [](const PairRailFacts& rail) {
                 return Document::map(
                     {{"rail", Document::string(rail.name)}, {"a", end_document(rail.a)}, {"b", end_document(rail.b)}});
               }));
  document.add("phases", list_of(pair.phases, [](const LinkPhase& phase) { return to_document_of(phase); }));
  document.add("latencies", list_of(pair.latencies, [](const RailLatency& latency) {
                 return Document::map({{"rail", Document::string(latency.rail)},
                                       {"rows", to_document(latency.rows)},
                                       {"sent", list_of(latency.sent, [](const SentMessages& sent) {
                                          return Document::map({{"from", Document::string(sent.from)},
                                                                {"messages", Document::number(sent.count)},
                                                                {"resent", Document::number(sent.resent)}});
                                        })}});
               }));
  document.add("counters", list_of(pair.counters, [](const CounterChange& counter) {
                 return Document::map({{"node", Document::string(counter.node)},
                                       {"rail", Document::string(counter.rail)},
                                       {"interface", Document::string(counter.interface)},
                                       {"name", Document::string(counter.name)},
                                       {"change", Document::number(counter.change)}});
               }));
  document.add("failures", list_of(pair.failures, [](const RailFailure& failure) {
                 return Document::map(
                     {{"rail", Document::string(failure.rail)}, {"message", Document::string(failure.message)}});
               }));
  return document;
}

}  // namespace

BitsPerSecond LinkPhase::sum(const std::string& from) const {
  BitsPerSecond sum{0};
  for (const RailRate& rate : rates) {
    if (rate.from == from) sum += rate.rate;
  }
  return sum;
}

std::optional<BitsPerSecond> PairResult::alone(const std::string& rail, const std::string& from) const {
  for (const LinkPhase& phase : phases) {
    if (phase.kind != LinkPhaseKind::kAlone) continue;
    for (const RailRate& rate : phase.rates) {
      if (rate.rail == rail && rate.from == from) return rate.rate;
    }
  }
  return std::nullopt;
}

const LinkPhase* PairResult::find(LinkPhaseKind kind, const std::string& from) const {
  for (const LinkPhase& phase : phases) {
    if (phase.kind == kind && phase.sum(from).value > 0) return &phase;
  }
  return nullptr;
}

Document to_json(const LinkTestResult& result) {
  Document document = Document::map(
      {{"schema", Document::number(std::int64_t{kSchema})}, {"cluster", Document::string(result.cluster)}});
  if (result.expected) {
    document.add("expected", Document::map({{"rail_rate", to_document(result.expected->rail_rate)},
                                            {"source", Document::string(result.expected->source)}}));
  }
  document.add("pairs", list_of(result.pairs, [](const PairResult& pair) { return to_document_of(pair); }));
  if (const auto& reduce = result.all_reduce) {
    Document all_reduce = Document::map({{"ranks", Document::number(std::int64_t{reduce->ranks})},
                                         {"transport", Document::string(reduce->transport)},
                                         {"small_time", to_document(reduce->small_time)},
                                         {"large_size", to_document(reduce->large_size)},
                                         {"large_bus_bandwidth", to_document(reduce->large_bus_bandwidth)},
                                         {"taken", Document::number(reduce->taken)}});
    if (reduce->large_bus_bandwidth_again) all_reduce.add("again", to_document(*reduce->large_bus_bandwidth_again));
    document.add("all_reduce", std::move(all_reduce));
  } else {
    document.add("all_reduce_missing", Document::string(result.all_reduce_missing));
  }
  if (result.all_reduce_failure) document.add("all_reduce_failure", Document::string(*result.all_reduce_failure));
  document.add("findings", to_document(result.findings));
  if (!result.withheld.empty()) document.add("not_evaluated", to_document(result.withheld));
  return document;
}

}  // namespace yoke::link
