#include "yoke/spec/step_account.h"

#include "yoke/base/fields.h"

namespace yoke::spec {

template <class Visitor>
void visit_fields(Visitor& visit, RailUse& use) {
  visit.required("rail", use.rail);
  visit.required("peer", use.peer);
  visit.required("peer_node", use.peer_node);
  visit.required("state", use.state);
  visit.optional("local", use.local);
  visit.optional("remote", use.remote);
  visit.optional("interface", use.interface);
  visit.optional("route", use.route);
  visit.optional("bytes", use.bytes);
  visit.optional("busy", use.busy);
  visit.optional("held_up", use.held_up);
  visit.optional("long_bytes", use.long_bytes);
  visit.optional("long_busy", use.long_busy);
  visit.optional("segments", use.segments);
  visit.optional("segments_again", use.segments_again);
  visit.optional("round_trip", use.round_trip);
  visit.optional("round_trip_min", use.round_trip_min);
  visit.optional("segment_bytes", use.segment_bytes);
}

template <class Visitor>
void visit_fields(Visitor& visit, StepSums& sums) {
  visit.required("steps", sums.steps);
  visit.required("tokens", sums.tokens);
  visit.required("seconds", sums.seconds);
  visit.required("weights", sums.weights);
  visit.required("cache", sums.cache);
  visit.required("others", sums.others);
  visit.required("exchange", sums.exchange);
  visit.required("exchanges", sums.exchanges);
  visit.required("exchange_bytes", sums.exchange_bytes);
  visit.optional("weight_bytes", sums.weight_bytes);
  visit.optional("operations", sums.operations);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankAccount& account) {
  visit.required("rank", account.rank);
  visit.required("node", account.node);
  visit.optional("machine", account.machine);
  visit.required("threads", account.threads);
  visit.required("decode", account.decode);
  visit.required("prefill", account.prefill);
  visit.required("mixed", account.mixed);
  visit.required("wall", account.wall);
  visit.optional("processor_wait", account.processor_wait);
  visit.optional("processor_time", account.processor_time);
  visit.optional("throttled", account.throttled);
  visit.optional("stolen", account.stolen);
  visit.optional("weights_held", account.weights_held);
  visit.optional("memory_anonymous", account.memory_anonymous);
  visit.optional("memory_huge", account.memory_huge);
  visit.optional("huge_pages", account.huge_pages);
  visit.optional("rails", account.rails);
}

template <class Visitor>
void visit_fields(Visitor& visit, ExchangeShares& shares) {
  visit.required("seconds", shares.seconds);
  visit.optional("waiting", shares.waiting);
}

template <class Visitor>
void visit_fields(Visitor& visit, StepAccount& account) {
  visit.required("transport", account.transport);
  visit.required("ranks", account.ranks);
  visit.required("decode", account.decode);
  visit.required("prefill", account.prefill);
}

Document to_json(const RailUse& use) { return write_fields(use); }
void from_json(const Document& document, RailUse& use) { read_fields(document, use); }
Document to_json(const StepSums& sums) { return write_fields(sums); }
void from_json(const Document& document, StepSums& sums) { read_fields(document, sums); }
Document to_json(const RankAccount& account) { return write_fields(account); }
void from_json(const Document& document, RankAccount& account) { read_fields(document, account); }
Document to_json(const StepAccount& account) { return write_fields(account); }
void from_json(const Document& document, StepAccount& account) { read_fields(document, account); }

}  // namespace yoke::spec
