#include "yoke/why/trace_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace yoke::why {
namespace {

using spec::RankTrace;
using spec::TraceSpan;

// What is one exchange on several ranks: the group (a stage, or -1 for all ranks), or the two ranks of a transfer; what
// it is called, the step, and the how-manieth of that name in it.
using ExchangeKey = std::tuple<SpanKind, int, int, std::string, std::int32_t, int>;

struct ExchangeTimes {
  double last = -std::numeric_limits<double>::infinity();  // when the last rank came
  std::map<int, double> begins;                            // by rank
};

bool is_exchange(const TraceSpan& span) { return span.kind != SpanKind::kStep && span.kind != SpanKind::kCompute; }

// Gives each exchange of a rank its key, in the order of its spans.
class Keys {
 public:
  explicit Keys(const RankTrace& trace) : trace_(trace) {}

  ExchangeKey key(const TraceSpan& span) {
    ExchangeKey key{span.kind, -1, -1, trace_.names[static_cast<std::size_t>(span.name)], span.step, 0};
    if (span.kind == SpanKind::kGroupExchange) std::get<1>(key) = trace_.stage;
    if (span.kind == SpanKind::kSend || span.kind == SpanKind::kReceive) {
      const bool sends = span.kind == SpanKind::kSend;
      key = {SpanKind::kSend, sends ? trace_.rank : span.peer, sends ? span.peer : trace_.rank, "", span.step, 0};
    }
    std::get<5>(key) = counts_[key]++;
    return key;
  }

 private:
  const RankTrace& trace_;
  std::map<ExchangeKey, int> counts_;
};

std::map<ExchangeKey, ExchangeTimes> find_exchanges(const std::vector<RankTrace>& traces) {
  std::map<ExchangeKey, ExchangeTimes> exchanges;
  for (const RankTrace& trace : traces) {
    Keys keys(trace);
    for (const TraceSpan& span : trace.spans) {
      if (!is_exchange(span)) continue;
      ExchangeTimes& exchange = exchanges[keys.key(span)];
      const double begin = trace.common_time(span.begin);
      exchange.begins[trace.rank] = begin;
      exchange.last = std::max(exchange.last, begin);
    }
  }
  return exchanges;
}

// Until when a rank waits in an exchange.
double wait_end(const TraceSpan& span, const RankTrace& trace, const ExchangeTimes& exchange, double begin,
                double end) {
  double until = exchange.last;
  if (span.kind == SpanKind::kSend) return begin;  // what was sent may lie in a buffer
  if (span.peer >= 0) {
    const auto peer = exchange.begins.find(span.peer);
    if (span.peer == trace.rank || peer == exchange.begins.end()) return begin;
    until = peer->second;
  }
  return std::clamp(until, begin, end);
}

// Every layer begins with a norm and the product that makes queries, keys and values; the rows of the head end the
// last.
std::vector<std::int64_t> layers_of(const RankTrace& trace) {
  std::vector<std::int64_t> layers(trace.spans.size(), -1);
  std::optional<std::int32_t> step;
  std::int64_t next = 0;
  bool inside = false;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const TraceSpan& span = trace.spans[i];
    if (step != span.step) {
      step = span.step;
      next = trace.first_layer;
      inside = false;
    }
    if (span.kind == SpanKind::kStep) continue;
    const std::string& name = trace.names[static_cast<std::size_t>(span.name)];
    if (name == "q, k, v") {
      inside = true;
      const bool after_norm = i > 0 && trace.spans[i - 1].step == span.step &&
                              trace.names[static_cast<std::size_t>(trace.spans[i - 1].name)] == "norms";
      if (after_norm) layers[i - 1] = next;
      layers[i] = next++;
      continue;
    }
    if (name == "rows of the head" || span.kind == SpanKind::kSend) inside = false;
    if (inside) layers[i] = next - 1;
  }
  return layers;
}

void add_layers(std::vector<TracePart>& parts) {
  std::map<std::pair<std::int32_t, std::int64_t>, TracePart> layers;
  for (const TracePart& part : parts) {
    if (part.layer < 0) continue;
    const auto [entry, is_new] = layers.try_emplace({part.step, part.layer});
    TracePart& layer = entry->second;
    if (is_new) {
      layer = {.kind = PartKind::kLayer,
               .name = fmt::format("layer {}", part.layer),
               .step = part.step,
               .layer = part.layer,
               .begin = part.begin};
    }
    layer.duration = std::max(layer.duration, part.begin + part.duration - layer.begin);
  }
  for (auto& [key, layer] : layers) parts.push_back(std::move(layer));
}

// What contains others begins no later and lasts longer; of two that are equal the kinds decide.
void sort_parts(std::vector<TracePart>& parts) {
  std::ranges::stable_sort(parts, [](const TracePart& a, const TracePart& b) {
    return std::tuple(a.begin, -a.duration, a.kind) < std::tuple(b.begin, -b.duration, b.kind);
  });
}

RankParts divide(const RankTrace& trace, const std::map<ExchangeKey, ExchangeTimes>& exchanges, double zero) {
  constexpr double kMicro = 1e-3;  // of nanoseconds
  constexpr double kSeconds = 1e-9;
  RankParts divided{.rank = trace.rank,
                    .node = trace.node,
                    .clock_error = kSeconds * static_cast<double>(trace.clock_error()),
                    .dropped = trace.dropped,
                    .parts = {},
                    .sums = {}};
  const std::vector<std::int64_t> layers = layers_of(trace);
  Keys keys(trace);
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const TraceSpan& span = trace.spans[i];
    // Both ends by the common clock: where the ranks' clocks drift, a slice that is stretched but not moved would leave
    // the one around it.
    const double begin = trace.common_time(span.begin) - zero;
    const double duration = std::max(0.0, trace.common_time(span.begin + span.duration) - zero - begin);
    TracePart part{.kind = PartKind::kCompute,
                   .name = trace.names[static_cast<std::size_t>(span.name)],
                   .step = span.step,
                   .layer = layers[i],
                   .begin = kMicro * begin,
                   .duration = kMicro * duration,
                   .bytes = span.bytes};
    if (span.kind == SpanKind::kStep) {
      part.kind = PartKind::kStep;
      divided.sums.steps += kSeconds * duration;
    } else if (!is_exchange(span)) {
      divided.sums.compute += kSeconds * duration;
    } else {
      part.kind = PartKind::kExchange;
      const ExchangeTimes& exchange = exchanges.at(keys.key(span));
      const double waited = wait_end(span, trace, exchange, begin + zero, begin + zero + duration) - begin - zero;
      TracePart waiting = part, transfer = part;
      waiting.kind = PartKind::kWaiting;
      waiting.name = "waiting";
      waiting.duration = kMicro * waited;
      waiting.bytes = 0;
      transfer.kind = PartKind::kTransfer;
      transfer.name = "transfer";
      transfer.begin = part.begin + waiting.duration;
      transfer.duration = part.duration - waiting.duration;
      divided.sums.waiting += kSeconds * waited;
      divided.sums.transfer += kSeconds * (duration - waited);
      if (waited > 0) divided.parts.push_back(std::move(waiting));
      if (waited < duration) divided.parts.push_back(std::move(transfer));
    }
    divided.parts.push_back(std::move(part));
  }
  add_layers(divided.parts);
  sort_parts(divided.parts);
  return divided;
}

}  // namespace

std::vector<RankParts> divide_traces(const std::vector<spec::RankTrace>& traces) {
  const std::map<ExchangeKey, ExchangeTimes> exchanges = find_exchanges(traces);
  double zero = std::numeric_limits<double>::infinity();
  for (const RankTrace& trace : traces) {
    for (const TraceSpan& span : trace.spans) zero = std::min(zero, trace.common_time(span.begin));
  }
  std::vector<RankParts> divided;
  for (const RankTrace& trace : traces) divided.push_back(divide(trace, exchanges, zero));
  return divided;
}

}  // namespace yoke::why
