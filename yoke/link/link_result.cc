#include "yoke/link/link_result.h"

#include "yoke/base/fields.h"

namespace yoke {

inline void write_field(Document& document, const PingResult& value) { document = to_json(value); }
inline void write_field(Document& document, const Finding& value) { document = to_json(value); }

namespace {

constexpr int kSchema = 1;

Document to_document_of(const HalfRate& rate) {
  Document document = Document::map({{"half", Document::string(rate.half)},
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
                        {"rates", list_of(phase.rates, [](const HalfRate& rate) { return to_document_of(rate); })},
                        {"cores", list_of(phase.loads, [](const NodeLoad& load) {
                           return Document::map({{"node", Document::string(load.node)},
                                                 {"used", Document::number(load.cores)},
                                                 {"taken", Document::number(load.taken)}});
                         })}});
}

Document end_document(const HalfFacts& facts) {
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
  document.add("halves", list_of(pair.halves, [](const PairHalfFacts& half) {
                 return Document::map(
                     {{"half", Document::string(half.name)}, {"a", end_document(half.a)}, {"b", end_document(half.b)}});
               }));
  document.add("phases", list_of(pair.phases, [](const LinkPhase& phase) { return to_document_of(phase); }));
  document.add("latencies", list_of(pair.latencies, [](const HalfLatency& latency) {
                 return Document::map({{"half", Document::string(latency.half)},
                                       {"rows", to_document(latency.rows)},
                                       {"sent", list_of(latency.sent, [](const SentMessages& sent) {
                                          return Document::map({{"from", Document::string(sent.from)},
                                                                {"messages", Document::number(sent.count)},
                                                                {"resent", Document::number(sent.resent)}});
                                        })}});
               }));
  document.add("counters", list_of(pair.counters, [](const CounterChange& counter) {
                 return Document::map({{"node", Document::string(counter.node)},
                                       {"half", Document::string(counter.half)},
                                       {"interface", Document::string(counter.interface)},
                                       {"name", Document::string(counter.name)},
                                       {"change", Document::number(counter.change)}});
               }));
  document.add("failures", list_of(pair.failures, [](const HalfFailure& failure) {
                 return Document::map(
                     {{"half", Document::string(failure.half)}, {"message", Document::string(failure.message)}});
               }));
  return document;
}

}  // namespace

BitsPerSecond LinkPhase::sum(const std::string& from) const {
  BitsPerSecond sum{0};
  for (const HalfRate& rate : rates) {
    if (rate.from == from) sum += rate.rate;
  }
  return sum;
}

std::optional<BitsPerSecond> LinkPhase::sum_again(const std::string& from) const {
  BitsPerSecond sum{0};
  for (const HalfRate& rate : rates) {
    if (rate.from != from) continue;
    if (!rate.again) return std::nullopt;
    sum += *rate.again;
  }
  return sum;
}

std::optional<BitsPerSecond> PairResult::alone(const std::string& half, const std::string& from) const {
  for (const LinkPhase& phase : phases) {
    if (phase.kind != LinkPhaseKind::kAlone) continue;
    for (const HalfRate& rate : phase.rates) {
      if (rate.half == half && rate.from == from) return rate.rate;
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
    document.add("expected", Document::map({{"half_rate", to_document(result.expected->half_rate)},
                                            {"source", Document::string(result.expected->source)}}));
  }
  document.add("pairs", list_of(result.pairs, [](const PairResult& pair) { return to_document_of(pair); }));
  if (const auto& reduce = result.all_reduce) {
    Document all_reduce = Document::map({{"ranks", Document::number(std::int64_t{reduce->ranks})},
                                         {"carrier", Document::string(reduce->carrier)},
                                         {"time_16k", to_document(reduce->small_time)},
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
  if (!result.withheld.empty()) document.add("not_judged", to_document(result.withheld));
  return document;
}

}  // namespace yoke
