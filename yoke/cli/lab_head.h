// Commands that concern a cluster run on its head node. For a lab's cluster that node is virtual: the program executes
// itself there first, so that everything behaves as on real machines.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/cli/command.h"

namespace yoke {

// The exit status of this very command line, run on the lab's head node; nothing where this is not about a lab, or we
// are in it already.
std::optional<int> run_on_lab_head(const Session& session, const std::vector<std::string>& arguments);

// The lab that a command of `yoke lab` means: the named one, else the one of --lab or of this folder's cluster file if
// it is up, else the only one.
std::string lab_meant(const Session& session, const std::optional<std::string>& name);

}  // namespace yoke
