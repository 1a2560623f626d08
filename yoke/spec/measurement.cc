#include "yoke/spec/measurement.h"

#include "yoke/base/fields.h"

namespace yoke::spec {

template <class Visitor>
void visit_fields(Visitor& visit, RailMeasurement& rail) {
  visit.required("from", rail.from);
  visit.required("to", rail.to);
  visit.required("from_interface", rail.from_interface);
  visit.required("to_interface", rail.to_interface);
  visit.optional("transport", rail.transport);
  visit.optional("alone", rail.alone);
  visit.optional("together", rail.together);
  visit.optional("both_ways", rail.both_ways);
  visit.optional("alone_again", rail.alone_again);
  visit.optional("together_again", rail.together_again);
  visit.optional("both_ways_again", rail.both_ways_again);
  visit.optional("taken", rail.taken);
  visit.optional("messages", rail.messages);
  visit.optional("resent", rail.resent);
  visit.optional("latency", rail.latency);
  visit.optional("failure", rail.failure);
}

template <class Visitor>
void visit_fields(Visitor& visit, CounterIncrease& counter) {
  visit.required("node", counter.node);
  visit.required("interface", counter.interface);
  visit.required("name", counter.name);
  visit.required("change", counter.change);
}

template <class Visitor>
void visit_fields(Visitor& visit, AllReduceMeasurement& all_reduce) {
  visit.required("ranks", all_reduce.ranks);
  visit.optional("transport", all_reduce.transport);
  visit.required("small_time", all_reduce.small_time);
  visit.required("large_size", all_reduce.large_size);
  visit.required("large_bus_bandwidth", all_reduce.large_bus_bandwidth);
  visit.optional("again", all_reduce.large_bus_bandwidth_again);
  visit.optional("taken", all_reduce.taken);
}

template <class Visitor>
void visit_fields(Visitor& visit, Measurement& measurement) {
  visit.optional("expected", measurement.expected);
  visit.required("expected_source", measurement.expected_source);
  visit.optional("transports", measurement.transports);
  visit.optional("transport_reason", measurement.transport_reason);
  visit.optional("rails", measurement.rails);
  visit.optional("counters", measurement.counters);
  visit.optional("all_reduce", measurement.all_reduce);
  visit.optional("all_reduce_failure", measurement.all_reduce_failure);
}

void RailMeasurement::set_rate(std::string_view phase, BitsPerSecond rate, std::optional<BitsPerSecond> second) {
  if (phase == "alone") {
    alone = rate;
    alone_again = second;
  } else if (phase == "together") {
    together = rate;
    together_again = second;
  } else {
    both_ways = rate;
    both_ways_again = second;
  }
}

Document to_json(const Measurement& measurement) { return write_fields(measurement); }
void from_json(const Document& document, Measurement& measurement) { read_fields(document, measurement); }

}  // namespace yoke::spec
