#include "yoke/cli/check_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/rule.h"
#include "yoke/cli/findings_text.h"
#include "yoke/report/table.h"

namespace yoke {
namespace {

constexpr int kExitNotLooked = 2;

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

double taken_by_others(const Measurement& measurement) {
  double taken = measurement.all_reduce ? measurement.all_reduce->taken : 0;
  for (const HalfMeasurement& half : measurement.halves) taken = std::max(taken, half.taken);
  return taken;
}

std::string measured_text(const CheckReport& report) {
  if (!report.facts.measurement) return fmt::format("Nothing was measured: {}.\n", report.not_measured);
  Table table{.columns = {{.header = "from"},
                          {.header = "to"},
                          {.header = "interface"},
                          {.header = "alone", .align = TextAlign::kRight},
                          {.header = "together", .align = TextAlign::kRight}}};
  for (const HalfMeasurement& half : report.facts.measurement->halves) {
    const auto rate = [](const std::optional<BitsPerSecond>& value) { return value ? to_string(*value) : "-"; };
    const auto both = [&](const auto& first, const auto& again) {
      return again ? fmt::format("{}, then {}", rate(first), rate(again)) : rate(first);
    };
    table.rows.push_back({half.from, half.to, half.from_interface, both(half.alone, half.alone_again),
                          both(half.together, half.together_again)});
  }
  std::string out = table.rows.empty() ? "" : render_text(table, {.width = kFindingsWidth});
  const Measurement& measurement = *report.facts.measurement;
  const bool by_tcp = std::any_of(measurement.halves.begin(), measurement.halves.end(), [&](const auto& half) {
    return measurement.expected && is_floor(half.transport, *measurement.expected);
  });
  if (by_tcp) {
    out += fmt::format(
        "RDMA was not measured: {}. By TCP only rates below a quarter of what a half should carry are judged;\n"
        "'apt-get install perftest' on all nodes lets RDMA be measured.\n",
        measurement.transport_reason);
  }
  if (const auto& all_reduce = report.facts.measurement->all_reduce) {
    out += fmt::format("all-reduce over {} ranks: 16 KB in {}, {} at {}", all_reduce->ranks,
                       to_string(all_reduce->small_time), to_string(all_reduce->large_size),
                       to_string(all_reduce->large_bus_bandwidth));
    if (const auto& again = all_reduce->large_bus_bandwidth_again) out += fmt::format(", then {}", to_string(*again));
    out += "\n";
  }
  if (const double taken = taken_by_others(measurement); taken >= kTakenMost) {
    out += fmt::format("Measured while the CPU was up to {:.0f}% busy with other programs.\n", taken * 100);
  }
  return out;
}

std::string summary(const CheckReport& report) {
  const auto faults = static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [](const Finding& finding) { return finding.severity == Severity::kFault; }));
  std::string out;
  if (!report.withheld.empty()) out = withheld_text(report.withheld, taken_by_others(*report.facts.measurement));
  if (report.findings.empty()) {
    out += fmt::format("Clean: {} of {} rules applied, and found nothing wrong.\n", count_applied(report.facts),
                       rule_table().size());
  } else {
    out += fmt::format("{}: {}, {}.\n", counted(report.findings.size(), "finding"), counted(faults, "fault"),
                       counted(report.findings.size() - faults, "warning"));
  }
  if (!report.looked_everywhere()) out += "Not every node could be looked at, so there may be more.\n";
  return out;
}

}  // namespace

bool CheckReport::looked_everywhere() const {
  return std::all_of(facts.nodes.begin(), facts.nodes.end(), [](const SurveyedNode& node) { return node.machine; });
}

int CheckReport::exit_status() const {
  if (!looked_everywhere()) return kExitNotLooked;
  if (!findings.empty()) return kExitFindings;
  return facts.measurement && withheld.empty() ? kExitOk : kExitUnmeasured;
}

std::string report_text(const CheckReport& report) {
  std::vector<std::string> names;
  for (const SurveyedNode& node : report.facts.nodes) names.push_back(node.name + (node.machine ? "" : " (not seen)"));
  std::string out = fmt::format("{}: {}\n", report.facts.cluster ? "cluster " + report.facts.cluster->name : "checked",
                                fmt::join(names, ", "));
  out += measured_text(report) + "\n";
  return out + findings_text(report.findings) + summary(report);
}

Document report_json(const CheckReport& report) {
  Document nodes = Document::list();
  for (const SurveyedNode& node : report.facts.nodes) {
    Document row = Document::map(
        {{"name", Document::string(node.name)}, {"looked_at", Document::boolean(node.machine.has_value())}});
    if (node.failure) row.add("problem", Document::string(node.failure->message));
    nodes.items.push_back(std::move(row));
  }
  Document document = Document::map({{"schema", Document::number(std::int64_t{1})}});
  if (report.facts.cluster) document.add("cluster", Document::string(report.facts.cluster->name));
  document.add("nodes", std::move(nodes));
  document.add("rules", Document::number(static_cast<std::int64_t>(rule_table().size())));
  if (report.facts.measurement) {
    document.add("measurement", to_json(*report.facts.measurement));
  } else {
    document.add("not_measured", Document::string(report.not_measured));
  }
  document.add("findings", findings_json(report.findings));
  if (!report.withheld.empty()) document.add("not_judged", findings_json(report.withheld));
  document.add("exit_status", Document::number(std::int64_t{report.exit_status()}));
  return document;
}

std::string changes_text(const std::vector<FactChange>& changes, const std::string& since) {
  if (changes.empty()) return fmt::format("Nothing changed since the last clean check ({}).\n", since);
  Table table{.columns = {{.header = "node"},
                          {.header = "what", .fit = ColumnFit::kShrinks},
                          {.header = "then", .fit = ColumnFit::kShrinks},
                          {.header = "now", .fit = ColumnFit::kShrinks}}};
  for (const FactChange& change : changes) {
    table.rows.push_back(
        {change.node, change.what, change.before.empty() ? "-" : change.before, change.now.empty() ? "-" : change.now});
  }
  return fmt::format("Changed since the last clean check ({}):\n{}", since,
                     render_text(table, {.width = kFindingsWidth}));
}

}  // namespace yoke
