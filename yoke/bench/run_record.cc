#include "yoke/bench/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/build_info.h"
#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/bench/machine_facts.h"
#include "yoke/bench/shape.h"
#include "yoke/bench/verdict.h"

namespace yoke::bench {

template <class Visitor>
void visit_fields(Visitor& visit, RecordRow& row) {
  visit.required("name", row.name);
  visit.required("size", row.size);
  visit.required("value", row.value);
  visit.required("low", row.low);
  visit.required("high", row.high);
  visit.required("unit", row.unit);
  visit.optional("predicted", row.predicted);
}

std::string plain_number(double value) {
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

bool less_is_better(const RecordRow& row) { return row.unit == "us"; }

RunRecord new_record(std::string benchmark, const Document& settings) {
  const MachineFacts machine = facts_of_this_machine(DiskTree());
  return {.time = utc_now(),
          .benchmark = std::move(benchmark),
          .host = machine.host,
          .processor = machine.processor,
          .version = std::string(build_info().version),
          .commit = std::string(build_info().commit),
          .settings = print_json(settings, JsonLayout::kOneLine)};
}

RunRecord record_of(const CollectiveRun& run, const std::string& cluster) {
  Document settings = to_json(run.options);
  settings.add("ranks", Document::number(static_cast<std::int64_t>(run.ranks.size())));
  if (!cluster.empty()) settings.add("cluster", Document::string(cluster));
  std::vector<std::string> nodes;
  for (const RankFacts& rank : run.ranks) {
    if (std::find(nodes.begin(), nodes.end(), rank.host) == nodes.end()) nodes.push_back(rank.host);
  }
  settings.add("nodes", Document::string(fmt::format("{}", fmt::join(nodes, ", "))));
  settings.add("transport", Document::string(run.transport));
  if (const auto verdict = evaluate_link(run)) settings.add("verdict", Document::string(verdict->text));
  RunRecord record = new_record(std::string(comm::to_string(run.options.kind)), settings);
  for (const CollectiveRow& row : run.rows) {
    const CollectiveTraits& traits = traits_of(run.options.kind);
    const std::string root = traits.has_root ? fmt::format(" root {}", row.root) : "";
    const std::string what = fmt::format("{}{}{}", row.type, row.op == "none" ? "" : " " + row.op, root);
    const auto add = [&](std::string_view placement, const PlacementResult& result) {
      record.rows.push_back({.name = fmt::format("{} {}", what, placement),
                             .size = row.size,
                             .value = result.stats.p50,
                             .low = result.stats.p25,
                             .high = result.stats.p75,
                             .unit = "us"});
    };
    add("out-of-place", row.out_of_place);
    if (traits.in_place) add("in-place", row.in_place);
  }
  record.summary =
      fmt::format("{} ranks, {} to {}, avg busbw {:.3g} GB/s{}{}", run.ranks.size(),
                  yoke::to_string(run.options.size_min), yoke::to_string(run.options.size_max),
                  run.mean_bus_bandwidth(), run.wrong() ? ", WRONG" : "", run.failure ? ", ended early" : "");
  return record;
}

Document to_json(const RunRecord& record) {
  Document map = Document::map({{"id", Document::number(record.id)}});
  const auto add = [&](std::string_view key, const std::string& value) {
    map.add(std::string(key), Document::string(value));
  };
  add("time", record.time);
  add("benchmark", record.benchmark);
  add("host", record.host);
  add("processor", record.processor);
  add("version", record.version);
  add("commit", record.commit);
  add("summary", record.summary);
  map.add("settings", parse_json(record.settings, "settings"));
  map.add("rows", to_document(record.rows));
  return map;
}

void from_json(const Document& document, RunRecord& record) {
  const auto need = [&](std::string_view key) -> const Document& {
    const Document* found = document.find(key);
    if (!found) throw Error(ErrorCode::kInvalid, fmt::format("a run without '{}'", key));
    return *found;
  };
  record = {.time = need("time").text,
            .benchmark = need("benchmark").text,
            .host = need("host").text,
            .processor = need("processor").text,
            .version = need("version").text,
            .commit = need("commit").text,
            .settings = print_json(need("settings"), JsonLayout::kOneLine),
            .summary = need("summary").text,
            .rows = from_json<std::vector<RecordRow>>(need("rows"))};
}

}  // namespace yoke::bench
