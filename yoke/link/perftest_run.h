// Runs perftest processes of one node side by side: one for each rail, as it drives one device a process.
#pragma once
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"

namespace yoke::link {

struct PerftestRequest {
  std::vector<std::vector<std::string>> commands;
  Seconds limit{30};  // for all of it
};

struct PerftestOutput {
  bool ok = false;
  std::string text;  // both streams
};

// In the order of the commands. The waiting side may not listen yet when the asking side comes: a program that fails
// at once is started again, for the first seconds.
std::vector<PerftestOutput> run_perftests(const PerftestRequest& request);

Document to_json(const PerftestRequest& request);
void from_json(const Document& document, PerftestRequest& request);
Document to_json(const PerftestOutput& output);
void from_json(const Document& document, PerftestOutput& output);

}  // namespace yoke::link
