// What yoke check told, as short lines to compare.
#pragma once
#include <chrono>
#include <string>
#include <thread>

#include "tests/lab_fixture.h"
#include "yoke/base/json.h"

namespace yoke {

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

// What the facts of a lab's nodes show, without measuring. The hardware tree follows its faults within a moment.
inline std::string settled(const TestLab& lab, const std::string& wanted) {
  std::string found;
  for (int i = 0; i < 8; ++i) {
    found = findings_in(lab.yoke({"check", "--no-measure", "--json", "--timeout", "4s"}));
    if (found == wanted) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return found;
}

}  // namespace yoke
