#include "yoke/gameday/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/gameday/answers.h"

namespace yoke::gameday {
namespace {

// As docs/checks.md and docs/link.md say: clean, findings, clean without a measurement.
const std::vector<int> kAnswers = {0, 1, 3};

}  // namespace

Document look(PhaseRun& phase_run, const std::vector<std::string>& arguments) {
  Document answer = phase_run.run_json(arguments, {.answers = kAnswers});
  for (const Document& finding : list_at(answer, "findings").items) {
    phase_run.print(
        fmt::format("{} {}: {}", text_at(finding, "severity"), text_at(finding, "rule"), text_at(finding, "what")));
    phase_run.print(fmt::format("  fix: {}", text_at(finding, "fix")));
  }
  return answer;
}

bool is_clean(const Document& answer) { return list_at(answer, "findings").items.empty(); }

bool all_name(const Document& answer, const std::string& node, const std::string& rail) {
  const std::vector<Document>& findings = list_at(answer, "findings").items;
  return !findings.empty() && std::all_of(findings.begin(), findings.end(), [&](const Document& finding) {
    const std::string what = text_at(finding, "what");
    // On a Spark the rails of a port are printed as its halves.
    const bool names_rail =
        what.find("rail " + rail) != std::string::npos || what.find("half " + rail) != std::string::npos;
    return what.find(node) != std::string::npos && names_rail;
  });
}

}  // namespace yoke::gameday
