#include "yoke/check/prometheus_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke::check {
namespace {

std::string label(std::string_view text) {
  std::string safe;
  for (const char c : printable(text, 200)) {
    if (c == '\\' || c == '"') safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace

std::string prometheus_text(const std::vector<spec::Finding>& findings, double examined_at) {
  std::string out =
      "# HELP yoke_check_findings Findings of the last yoke check, by severity.\n"
      "# TYPE yoke_check_findings gauge\n";
  for (const spec::Severity severity : {spec::Severity::kError, spec::Severity::kWarning, spec::Severity::kInfo}) {
    const auto count = std::ranges::count(findings, severity, &spec::Finding::severity);
    out += fmt::format("yoke_check_findings{{severity=\"{}\"}} {}\n", spec::to_string(severity), count);
  }
  out +=
      "# HELP yoke_check_finding A finding of the last yoke check.\n"
      "# TYPE yoke_check_finding gauge\n";
  std::vector<std::string> rows;
  for (const spec::Finding& finding : findings) {
    rows.push_back(fmt::format("yoke_check_finding{{rule=\"{}\",severity=\"{}\",node=\"{}\",subject=\"{}\"}} 1\n",
                               label(finding.rule), spec::to_string(finding.severity), label(finding.node.value_or("")),
                               label(finding.subject.value_or(""))));
  }
  // The same labels twice would make Prometheus refuse the file.
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (const std::string& row : rows) out += row;
  return out + fmt::format(
                   "# HELP yoke_check_time_seconds When it was.\n# TYPE yoke_check_time_seconds gauge\n"
                   "yoke_check_time_seconds {:.0f}\n",
                   examined_at);
}

void write_prometheus(const std::string& file, const std::vector<spec::Finding>& findings) {
  if (!file.ends_with(".prom")) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' does not end in .prom", printable(file, 200)),
                "node_exporter reads *.prom in the folder of --collector.textfile.directory");
  }
  write_file_atomically(file, prometheus_text(findings, static_cast<double>(std::time(nullptr))));
  chmod(file.c_str(), 0644);  // NOLINT: node_exporter runs as another user
}

}  // namespace yoke::check
