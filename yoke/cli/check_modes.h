// Other ways in which `yoke check` looks or reports: for a scheduler's prolog, for Prometheus, for a file of settings.
#pragma once
#include <string>
#include <vector>

#include "yoke/check/check_text.h"
#include "yoke/cli/command.h"

namespace yoke::cli {

// This node in one line, in less than two seconds: exit status 0 where a job may run, 1 where the node should be
// drained. Without a baseline of this node, or with `new_baseline`, a healthy one becomes it.
struct PrologOptions {
  bool new_baseline = false;
  std::string prometheus;  // a file to write as well; empty: none
};
int run_prolog(Session& session, const PrologOptions& options);

// What each line of the file does, and whether it is right on the machines of the survey.
int explain_file(Session& session, const std::string& file, const spec::Survey& facts);

}  // namespace yoke::cli
