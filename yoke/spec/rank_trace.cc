#include "yoke/spec/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "yoke/base/fields.h"

namespace yoke::spec {
namespace {

// A line for each span, numbers with blanks between: one text instead of a million values.
struct SpanLines {
  std::vector<TraceSpan>* spans;
};

Document to_json(const SpanLines& lines) {
  std::string text;
  std::int64_t before = 0;
  for (const TraceSpan& span : *lines.spans) {
    fmt::format_to(std::back_inserter(text), "{} {} {} {} {} {} {:.0f}\n", static_cast<int>(span.kind), span.name,
                   span.step, span.peer, span.begin - before, span.duration, span.bytes);
    before = span.begin;
  }
  return Document::string(std::move(text));
}

template <class Number>
Number number_from(const Document& document, const char*& at, const char* end) {
  Number value{};
  const auto [rest, failure] = std::from_chars(at, end, value);
  if (failure != std::errc{} || rest == end || (*rest != ' ' && *rest != '\n')) refuse_field(document, "spans");
  at = rest + 1;
  return value;
}

void from_json(const Document& document, SpanLines& lines) {
  if (document.kind != Document::Kind::kText) refuse_field(document, "spans as a text");
  const char* at = document.text.data();
  const char* const end = at + document.text.size();
  std::int64_t before = 0;
  while (at != end) {
    TraceSpan span;
    const int kind = number_from<int>(document, at, end);
    if (kind < 0 || kind > static_cast<int>(SpanKind::kReceive)) refuse_field(document, "kinds of spans");
    span.kind = static_cast<SpanKind>(kind);
    span.name = number_from<std::int32_t>(document, at, end);
    span.step = number_from<std::int32_t>(document, at, end);
    span.peer = number_from<std::int32_t>(document, at, end);
    // Unsigned: a sum beyond the range is a wrong time, and no undefined behaviour.
    span.begin = static_cast<std::int64_t>(static_cast<std::uint64_t>(before) +
                                           static_cast<std::uint64_t>(number_from<std::int64_t>(document, at, end)));
    span.duration = number_from<std::int64_t>(document, at, end);
    span.bytes = static_cast<double>(number_from<std::int64_t>(document, at, end));
    before = span.begin;
    lines.spans->push_back(span);
  }
}

}  // namespace

template <class Visitor>
void visit_fields(Visitor& visit, ClockMark& mark) {
  visit.required("at", mark.at);
  visit.required("offset", mark.offset);
  visit.required("error", mark.error);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankTrace& trace) {
  visit.required("rank", trace.rank);
  visit.required("node", trace.node);
  visit.optional("stage", trace.stage);
  visit.optional("first_layer", trace.first_layer);
  visit.optional("clock", trace.clock);
  visit.optional("dropped", trace.dropped);
  visit.optional("names", trace.names);
  SpanLines lines{&trace.spans};
  visit.required("spans", lines);
}

Document to_json(const RankTrace& trace) { return write_fields(trace); }
void from_json(const Document& document, RankTrace& trace) {
  read_fields(document, trace);
  for (const TraceSpan& span : trace.spans) {
    if (span.name < 0 || span.name >= std::ssize(trace.names) || span.duration < 0) {
      refuse_field(document, "spans with names and durations");
    }
  }
}

std::int64_t nanoseconds(Instant instant) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(instant.time_since_epoch()).count();
}

RankTrace trace_of(const SpanLog& log) {
  RankTrace trace;
  trace.dropped = log.dropped();
  trace.spans.reserve(log.spans().size());
  std::map<std::string_view, std::int32_t> ids;
  for (const Span& span : log.spans()) {
    const auto [entry, is_new] = ids.try_emplace(span.name, static_cast<std::int32_t>(trace.names.size()));
    if (is_new) trace.names.emplace_back(span.name);
    trace.spans.push_back({.kind = span.kind,
                           .name = entry->second,
                           .step = span.step,
                           .peer = span.peer,
                           .begin = nanoseconds(span.begin),
                           .duration = nanoseconds(span.end) - nanoseconds(span.begin),
                           .bytes = span.bytes});
  }
  return trace;
}

double RankTrace::common_time(std::int64_t at) const {
  if (clock.empty()) return static_cast<double>(at);
  const ClockMark& first = clock.front();
  const ClockMark& last = clock.back();
  const auto length = static_cast<double>(last.at - first.at);
  const double part = length > 0 ? std::clamp(static_cast<double>(at - first.at) / length, 0.0, 1.0) : 0;
  return static_cast<double>(at) + static_cast<double>(first.offset) +
         part * static_cast<double>(last.offset - first.offset);
}

std::int64_t RankTrace::clock_error() const {
  std::int64_t error = 0;
  for (const ClockMark& mark : clock) error = std::max(error, mark.error);
  return error;
}

}  // namespace yoke::spec
