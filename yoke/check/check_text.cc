#include "yoke/check/check_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/build_info.h"
#include "yoke/check/cluster_view.h"
#include "yoke/check/redact.h"
#include "yoke/check/rule.h"
#include "yoke/report/findings_text.h"
#include "yoke/report/table.h"
#include "yoke/spec/fabric.h"

namespace yoke::check {

namespace {

constexpr int kExitNotLooked = 2;

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

double taken_by_others(const spec::Measurement& measurement) {
  double taken = measurement.all_reduce ? measurement.all_reduce->taken : 0;
  for (const spec::RailMeasurement& rail : measurement.rails) taken = std::max(taken, rail.taken);
  return taken;
}

std::string measured_text(const CheckReport& report) {
  if (!report.facts.measurement) return fmt::format("Nothing was measured: {}.\n", report.not_measured);
  report::Table table{.columns = {{.header = "from"},
                                  {.header = "to"},
                                  {.header = "interface"},
                                  {.header = "alone", .align = report::TextAlign::kRight},
                                  {.header = "together", .align = report::TextAlign::kRight}}};
  for (const spec::RailMeasurement& rail : report.facts.measurement->rails) {
    const auto rate = [](const std::optional<BitsPerSecond>& value) { return value ? yoke::to_string(*value) : "-"; };
    const auto both = [&](const auto& first, const auto& again) {
      return again ? fmt::format("{}, then {}", rate(first), rate(again)) : rate(first);
    };
    table.rows.push_back({rail.from, rail.to, rail.from_interface, both(rail.alone, rail.alone_again),
                          both(rail.together, rail.together_again)});
  }
  std::string out = table.rows.empty() ? "" : report::render_text(table, report::for_output(report::kFindingsWidth));
  const spec::Measurement& measurement = *report.facts.measurement;
  const bool by_tcp = std::any_of(measurement.rails.begin(), measurement.rails.end(), [&](const auto& rail) {
    return measurement.expected && spec::is_floor(rail.transport, *measurement.expected);
  });
  if (by_tcp) {
    out += fmt::format(
        "RDMA was not measured: {}. The CPUs limit TCP, so only rates below 25% of the expected one are findings.\n"
        "To measure RDMA: 'apt-get install perftest' on all nodes.\n",
        measurement.transport_reason);
  }
  if (const auto& all_reduce = report.facts.measurement->all_reduce) {
    out += fmt::format("all-reduce over {} ranks: 16 KB in {}, {} at {}", all_reduce->ranks,
                       yoke::to_string(all_reduce->small_time), yoke::to_string(all_reduce->large_size),
                       yoke::to_string(all_reduce->large_bus_bandwidth));
    if (const auto& again = all_reduce->large_bus_bandwidth_again)
      out += fmt::format(", then {}", yoke::to_string(*again));
    out += "\n";
  }
  if (const double taken = taken_by_others(measurement); taken >= spec::kMaxTaken) {
    out += fmt::format("Measured while the CPU was up to {:.0f}% busy with other programs.\n", taken * 100);
  }
  return out;
}

// One line for all machines whose memory was read.
std::string canary_text(const CheckReport& report) {
  std::vector<std::string> rates;
  for (const spec::SurveyedNode& node : report.facts.nodes) {
    if (!node.canary || !node.canary->read) continue;
    std::string text = fmt::format("{} {}", node.name, to_string(*node.canary->read));
    if (node.canary->record)
      text += fmt::format(" (record {}, {})", to_string(*node.canary->record), node.canary->record_date);
    if (node.canary->taken >= spec::kMaxTaken)
      text += fmt::format(", {:.0f}% of the CPU was busy", node.canary->taken * 100);
    rates.push_back(std::move(text));
  }
  return rates.empty() ? "" : fmt::format("memory read: {}\n", fmt::join(rates, "; "));
}

// What the word covers.
std::string clean_text(const CheckReport& report) {
  const Coverage coverage = coverage_of(report.facts);
  std::string text = fmt::format(
      "{} {} of {} rules had something to examine",
      report.node ? fmt::format("No findings about {}.", *report.node) : "Clean:", coverage.examined, coverage.rules);
  const std::size_t rails = report.facts.measurement ? report.facts.measurement->rails.size() / 2 : 0;
  text += rails > 0 ? fmt::format("; {} measured.\n", counted(rails, "rail")) : "; no link was measured.\n";
  if (!coverage.missing.empty()) text += fmt::format("The others need {}.\n", fmt::join(coverage.missing, ", "));
  return text;
}

std::string summary(const CheckReport& report) {
  const auto errors = static_cast<std::size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [](const spec::Finding& finding) { return finding.severity == spec::Severity::kError; }));
  std::string out;
  if (!report.withheld.empty())
    out = report::withheld_text(report.withheld, taken_by_others(*report.facts.measurement));
  if (report.findings.empty()) {
    out += clean_text(report);
  } else {
    out += fmt::format("{}: {}, {}.\n", counted(report.findings.size(), "finding"), counted(errors, "error"),
                       counted(report.findings.size() - errors, "warning"));
  }
  if (!report.elsewhere.empty()) {
    out += fmt::format("{} about other nodes: 'yoke check' without --node shows {}.\n",
                       counted(report.elsewhere.size(), "finding"), report.elsewhere.size() == 1 ? "it" : "them");
  }
  std::vector<std::string> unread;
  for (const spec::SurveyedNode& node : report.facts.nodes) {
    if (!node.machine) unread.push_back(node.name);
  }
  if (!unread.empty()) out += fmt::format("Not checked: {}. There may be more findings.\n", fmt::join(unread, ", "));
  return out;
}

}  // namespace

bool CheckReport::reached_all_nodes() const {
  return std::all_of(facts.nodes.begin(), facts.nodes.end(),
                     [](const spec::SurveyedNode& each) { return each.machine; });
}

int CheckReport::exit_status() const {
  if (!reached_all_nodes()) return kExitNotLooked;
  if (!findings.empty() || !elsewhere.empty()) return kExitFindings;
  return facts.measurement && withheld.empty() ? kExitOk : kExitUnmeasured;
}

std::string report_text(const CheckReport& report) {
  std::vector<std::string> names;
  for (const spec::SurveyedNode& node : report.facts.nodes)
    names.push_back(node.name + (node.machine ? "" : " (not seen)"));
  std::string out = fmt::format("{}: {}\n", report.facts.cluster ? "cluster " + report.facts.cluster->name : "checked",
                                fmt::join(names, ", "));
  out += measured_text(report) + canary_text(report) + "\n";
  return out + report::findings_text(report.findings) + summary(report);
}

Document report_json(const CheckReport& report) {
  Document nodes = Document::list();
  for (const spec::SurveyedNode& node : report.facts.nodes) {
    Document row = Document::map(
        {{"name", Document::string(node.name)}, {"looked_at", Document::boolean(node.machine.has_value())}});
    if (node.failure) row.add("problem", Document::string(node.failure->message));
    if (node.canary && node.canary->read) {
      Document canary = Document::map(
          {{"read", Document::number(node.canary->read->value)}, {"taken", Document::number(node.canary->taken)}});
      if (node.canary->record) {
        canary.add("record", Document::number(node.canary->record->value));
        canary.add("record_date", Document::string(node.canary->record_date));
      }
      row.add("memory", std::move(canary));
    }
    nodes.items.push_back(std::move(row));
  }
  Document document = Document::map({{"schema", Document::number(std::int64_t{1})}});
  if (report.facts.cluster) document.add("cluster", Document::string(report.facts.cluster->name));
  document.add("nodes", std::move(nodes));
  document.add("rules", Document::number(static_cast<std::int64_t>(rule_table().size())));
  document.add("rules_examined", Document::number(static_cast<std::int64_t>(coverage_of(report.facts).examined)));
  if (report.facts.measurement) {
    document.add("measurement", spec::to_json(*report.facts.measurement));
  } else {
    document.add("not_measured", Document::string(report.not_measured));
  }
  document.add("findings", report::findings_json(report.findings));
  if (report.node) document.add("findings_elsewhere", report::findings_json(report.elsewhere));
  if (!report.withheld.empty()) document.add("not_evaluated", report::findings_json(report.withheld));
  document.add("exit_status", Document::number(std::int64_t{report.exit_status()}));
  return document;
}

std::string changes_text(const std::vector<FactChange>& changes, const std::string& since) {
  if (changes.empty()) return fmt::format("Nothing changed since the last clean check ({}).\n", since);
  report::Table table{.columns = {{.header = "node"},
                                  {.header = "what", .fit = report::ColumnFit::kShrinks},
                                  {.header = "before", .fit = report::ColumnFit::kShrinks},
                                  {.header = "now", .fit = report::ColumnFit::kShrinks}}};
  for (const FactChange& change : changes) {
    table.rows.push_back(
        {change.node, change.what, change.before.empty() ? "-" : change.before, change.now.empty() ? "-" : change.now});
  }
  return fmt::format("Changed since the last clean check ({}):\n{}", since,
                     report::render_text(table, report::for_output(report::kFindingsWidth)));
}

// yoke check --paste: one page for a post in a forum.

namespace {

constexpr std::size_t kMaxNodes = 8;  // a page holds no more
constexpr std::size_t kMaxFindings = 12;

std::string nccl_text(const spec::Machine& machine) {
  std::vector<std::string> parts;
  for (const spec::NcclBuild& build : machine.nccl) {
    parts.push_back(fmt::format("{} {}", build.version.value_or("?"), build.build_id.value_or("").substr(0, 8)));
  }
  return parts.empty() ? "none found" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string node_text(const ClusterView& view, const spec::SurveyedNode& node) {
  if (!node.machine) return fmt::format("**{}**: not seen ({})\n\n", node.name, node.failure->message);
  const spec::Machine& machine = *node.machine;
  std::string out =
      fmt::format("**{}**: {} {}, {}, kernel {}, driver {}, CUDA {}, NCCL {}\n\n", node.name,
                  machine.vendor.value_or(""), machine.product.value_or("machine"), machine.os, machine.kernel,
                  machine.driver.value_or("none"), machine.cuda.value_or("none"), nccl_text(machine));
  const std::vector<const RailEnd*> rails = view.rails_of(node);
  if (rails.empty()) return out;
  out +=
      "| rail | interface | link | address | MTU | PCIe | RDMA | firmware | GID "
      "|\n|---|---|---|---|---|---|---|---|---|\n";
  for (const RailEnd* end : rails) {
    if (!end->interface) {
      out += fmt::format("| {} | {} | not there | | | | | | |\n", end->rail, end->name);
      continue;
    }
    const auto& pcie = end->interface->pcie;
    const spec::RdmaDevice* rdma = end->rdma;
    out += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        spec::has_halves(machine) ? fmt::format("{} of {}", end->rail, end->port)
                                  : spec::rail_letter(machine, *end->interface),
        end->name, end->is_up() ? "up" : "down", end->address ? yoke::to_string(*end->address) : "none",
        end->interface->mtu, pcie ? fmt::format("{:g} GT/s x{}", pcie->speed_gt_per_second, pcie->width) : "-",
        rdma ? fmt::format("{} {}", rdma->name, rdma->state) : "-", rdma ? rdma->firmware.value_or("-") : "-",
        rdma && rdma->gid_index ? std::to_string(*rdma->gid_index) : "-");
  }
  for (const spec::NetworkSetting& setting : machine.settings) {
    out += fmt::format("- `{}={}` ({})\n", setting.name, setting.value, setting.where);
  }
  return out + "\n";
}

std::string rates_text(const CheckReport& report) {
  if (!report.facts.measurement) return fmt::format("Not measured: {}.\n\n", report.not_measured);
  std::string out = "| from | to | interface | alone | together |\n|---|---|---|---|---|\n";
  for (const spec::RailMeasurement& rail : report.facts.measurement->rails) {
    const auto rate = [](const std::optional<BitsPerSecond>& value) { return value ? yoke::to_string(*value) : "-"; };
    out += fmt::format("| {} | {} | {} | {} | {} |\n", rail.from, rail.to, rail.from_interface, rate(rail.alone),
                       rate(rail.together));
  }
  return out + "\n";
}

}  // namespace

std::string paste_text(const CheckReport& report, const std::vector<std::string>& names) {
  const ClusterView view(report.facts);
  std::string out = fmt::format("### yoke check ({}): nodes: {}, findings: {}\n\n", build_info().version,
                                report.facts.nodes.size(), report.findings.size());
  for (std::size_t i = 0; i < report.facts.nodes.size() && i < kMaxNodes; ++i) {
    out += node_text(view, report.facts.nodes[i]);
  }
  if (report.facts.nodes.size() > kMaxNodes)
    out += fmt::format("… and {} more nodes\n\n", report.facts.nodes.size() - kMaxNodes);
  out += rates_text(report);
  for (std::size_t i = 0; i < report.findings.size() && i < kMaxFindings; ++i) {
    const spec::Finding& finding = report.findings[i];
    out += fmt::format("- **{}** {}: {}. Evidence: {}\n", finding.rule, finding.node.value_or("cluster"), finding.what,
                       finding.evidence);
  }
  if (report.findings.size() > kMaxFindings)
    out += fmt::format("- … and {} more\n", report.findings.size() - kMaxFindings);
  return redact(out, names);
}

}  // namespace yoke::check
