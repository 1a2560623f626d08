#include "yoke/report/findings_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/terminal.h"
#include "yoke/report/table.h"

namespace yoke::report {
namespace {

std::string indented(std::string_view label, const std::string& text) {
  std::string out;
  for (const std::string& line : report::wrap_text(text, output_width(kFindingsWidth) - 13)) {
    out += fmt::format("  {:<9}  {}\n", out.empty() ? label : "", line);
  }
  return out;
}

}  // namespace

std::string findings_text(const std::vector<spec::Finding>& findings) {
  std::string out;
  for (const spec::Finding& finding : findings) {
    out += fmt::format("{} {}", spec::to_string(finding.severity), finding.rule);
    if (finding.node) out += ": " + *finding.node;
    if (finding.subject) out += (finding.node ? ", " : ": ") + *finding.subject;
    out += "\n" + indented("what", finding.what) + indented("evidence", finding.evidence) +
           indented("costs", finding.consequence) + indented("fix", finding.fix) + "\n";
  }
  return out;
}

std::string withheld_text(const std::vector<spec::Finding>& withheld, double taken) {
  if (withheld.empty()) return "";
  std::vector<std::string> names;
  for (const spec::Finding& finding : withheld) {
    std::string name = finding.rule;
    if (finding.node) name += " of " + *finding.node + (finding.subject ? " " + *finding.subject : "");
    names.push_back(std::move(name));
  }
  return fmt::format(
      "Not evaluated, as it was measured while the CPU was {:.0f}% busy with other programs: {}.\n"
      "Measure again when the machines are idle.\n",
      taken * 100, fmt::join(names, ", "));
}

Document findings_json(const std::vector<spec::Finding>& findings) {
  Document list = Document::list();
  for (const spec::Finding& finding : findings) list.items.push_back(spec::to_json(finding));
  return list;
}

}  // namespace yoke::report
