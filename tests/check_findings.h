// What yoke check told, as short lines to compare.
#pragma once
#include <string>

#include "tests/lab_fixture.h"
#include "yoke/base/json.h"

namespace yoke::tests {

// "rule node subject" of each finding, one a line.
inline std::string findings_in(const Outcome& outcome) {
  const Document document = parse_json(outcome.out, "yoke check");
  if (const Document* error = document.find("error")) return "error: " + error->find("message")->text;
  std::string lines;
  for (const Document& finding : document.find("findings")->items) {
    const auto text = [&](const char* key) { return finding.find(key) ? finding.find(key)->text : "-"; };
    lines += fmt::format("{} {} {}\n", text("rule"), text("node"), text("subject"));
  }
  return lines;
}

// What the facts of a lab's nodes show, without measuring.
inline std::string findings_of(const TestLab& lab) {
  lab.settle();
  return findings_in(lab.yoke({"check", "--no-measure", "--json", "--timeout", "10s"}));
}

}  // namespace yoke::tests
