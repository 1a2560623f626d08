#include "yoke/spec/measurement.h"

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke {

template <class Visitor>
void visit_fields(Visitor& visit, HalfMeasurement& half) {
  visit.required("from", half.from);
  visit.required("to", half.to);
  visit.required("from_interface", half.from_interface);
  visit.required("to_interface", half.to_interface);
  visit.optional("transport", half.transport);
  visit.optional("alone", half.alone);
  visit.optional("together", half.together);
  visit.optional("both_ways", half.both_ways);
  visit.optional("alone_again", half.alone_again);
  visit.optional("together_again", half.together_again);
  visit.optional("both_ways_again", half.both_ways_again);
  visit.optional("taken", half.taken);
  visit.optional("messages", half.messages);
  visit.optional("resent", half.resent);
  visit.optional("latency", half.latency);
  visit.optional("failure", half.failure);
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
  visit.optional("carrier", all_reduce.carrier);
  visit.required("time_16k", all_reduce.small_time);
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
  visit.optional("halves", measurement.halves);
  visit.optional("counters", measurement.counters);
  visit.optional("all_reduce", measurement.all_reduce);
  visit.optional("all_reduce_failure", measurement.all_reduce_failure);
}

namespace {

template <class T>
T required(const Document& map, std::string_view key) {
  const Document* field = map.find(key);
  if (!field) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", map.where, key));
  return from_document<T>(*field);
}

const std::vector<Document>& items_of(const Document& map, std::string_view key) {
  static const std::vector<Document> kNone;
  const Document* field = map.find(key);
  if (!field) return kNone;
  if (field->kind != Document::Kind::kList) refuse_field(*field, "a list");
  return field->items;
}

// Where a half ends on one of the two nodes; empty where the node has no such interface.
std::string interface_of(const Document& half, std::string_view end) {
  const Document* side = half.find(end);
  const Document* interface = side ? side->find("interface") : nullptr;
  return interface ? required<std::string>(*interface, "name") : "";
}

// The halves of one pair by their letter, each in both directions.
struct PairReader {
  std::string a, b;
  std::vector<std::pair<std::string, HalfMeasurement>> halves;

  explicit PairReader(const Document& pair) : a(required<std::string>(pair, "a")), b(required<std::string>(pair, "b")) {
    for (const Document& half : items_of(pair, "halves")) {
      const auto name = required<std::string>(half, "half");
      const std::string at_a = interface_of(half, "a");
      const std::string at_b = interface_of(half, "b");
      halves.emplace_back(name, HalfMeasurement{.from = a, .to = b, .from_interface = at_a, .to_interface = at_b});
      halves.emplace_back(name, HalfMeasurement{.from = b, .to = a, .from_interface = at_b, .to_interface = at_a});
    }
  }

  void read_phase(const Document& phase) {
    const auto kind = required<std::string>(phase, "kind");
    double taken = 0;
    for (const Document& load : items_of(phase, "cores")) {
      if (const Document* share = load.find("taken")) taken = std::max(taken, from_document<double>(*share));
    }
    for (const Document& rate : items_of(phase, "rates")) {
      const auto from = required<std::string>(rate, "from");
      const auto name = required<std::string>(rate, "half");
      const auto value = required<BitsPerSecond>(rate, "rate");
      const Document* again = rate.find("again");
      for (auto& [half, measured] : halves) {
        if (half != name || measured.from != from) continue;
        measured.taken = std::max(measured.taken, taken);
        measured.set_rate(kind, value, again ? std::optional(from_document<BitsPerSecond>(*again)) : std::nullopt);
      }
    }
  }

  void read_latency(const Document& latency) {
    const auto name = required<std::string>(latency, "half");
    for (auto& [half, measured] : halves) {
      if (half != name) continue;
      for (const Document& row : items_of(latency, "rows")) {
        const auto least = required<Seconds>(row, "min");
        measured.latency = measured.latency ? std::min(*measured.latency, least) : least;
      }
      for (const Document& sent : items_of(latency, "sent")) {
        if (required<std::string>(sent, "from") != measured.from) continue;
        measured.messages = required<std::int64_t>(sent, "messages");
        measured.resent = required<std::int64_t>(sent, "resent");
      }
    }
  }

  void read_failure(const Document& failure) {
    const auto name = required<std::string>(failure, "half");
    for (auto& [half, measured] : halves) {
      if (half == name) measured.failure = required<std::string>(failure, "message");
    }
  }
};

void read_pair(const Document& pair, Measurement& measurement) {
  PairReader reader(pair);
  for (const Document& phase : items_of(pair, "phases")) reader.read_phase(phase);
  for (const Document& latency : items_of(pair, "latencies")) reader.read_latency(latency);
  for (const Document& failure : items_of(pair, "failures")) reader.read_failure(failure);
  const auto transport = required<std::string>(pair, "transport");
  for (auto& [name, half] : reader.halves) {
    half.transport = transport;
    measurement.halves.push_back(std::move(half));
  }
  for (const Document& counter : items_of(pair, "counters")) {
    measurement.counters.push_back({.node = required<std::string>(counter, "node"),
                                    .interface = required<std::string>(counter, "interface"),
                                    .name = required<std::string>(counter, "name"),
                                    .change = required<std::int64_t>(counter, "change")});
  }
  const Document* reason = pair.find("transport_reason");
  if (reason && measurement.transport_reason.empty())
    measurement.transport_reason = from_document<std::string>(*reason);
  auto& known = measurement.transports;
  if (std::find(known.begin(), known.end(), transport) == known.end()) known.push_back(transport);
}

}  // namespace

void HalfMeasurement::set_rate(std::string_view phase, BitsPerSecond rate, std::optional<BitsPerSecond> second) {
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
Measurement measurement_from_json(const Document& document) { return read_fields<Measurement>(document); }

Measurement measurement_from_link_test(const Document& document) {
  if (document.kind != Document::Kind::kMap) refuse_field(document, "a map of keys");
  Measurement measurement;
  if (const Document* expected = document.find("expected")) {
    measurement.expected = required<BitsPerSecond>(*expected, "half_rate");
    measurement.expected_source = required<std::string>(*expected, "source");
  }
  for (const Document& pair : items_of(document, "pairs")) read_pair(pair, measurement);
  if (const Document* all_reduce = document.find("all_reduce")) {
    measurement.all_reduce = {.ranks = required<int>(*all_reduce, "ranks"),
                              .carrier = required<std::string>(*all_reduce, "carrier"),
                              .small_time = required<Seconds>(*all_reduce, "time_16k"),
                              .large_size = required<Bytes>(*all_reduce, "large_size"),
                              .large_bus_bandwidth = required<BytesPerSecond>(*all_reduce, "large_bus_bandwidth")};
    if (const Document* again = all_reduce->find("again")) {
      measurement.all_reduce->large_bus_bandwidth_again = from_document<BytesPerSecond>(*again);
    }
    if (const Document* taken = all_reduce->find("taken"))
      measurement.all_reduce->taken = from_document<double>(*taken);
  }
  if (const Document* failure = document.find("all_reduce_failure")) {
    measurement.all_reduce_failure = from_document<std::string>(*failure);
  }
  return measurement;
}

}  // namespace yoke
