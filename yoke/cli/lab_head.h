// Commands that concern a cluster run on its head node. For a lab's cluster that node is virtual: the program executes
// itself there first, so that everything behaves as on real machines.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/cli/command.h"
#include "yoke/lab/layout.h"

namespace yoke::cli {

// The exit status of this very command line, run on the lab's head node; nothing where this is not about a lab, or we
// are in it already.
std::optional<int> run_on_lab_head(const Session& session, const std::vector<std::string>& arguments);
// Whether it would: the cluster is a lab's, and we are not in it.
bool is_about_lab(const Session& session);

// The lab that a command of `yoke lab` means: the named one, else that of --lab, else that of this folder's cluster
// file. Never another: an Error names those that run.
std::string lab_meant(const Session& session, const std::optional<std::string>& name);

// Its layout; where it is not running, or somebody else's, an Error that says so and what to type.
lab::LabLayout load_lab(const Session& session, const std::string& lab);

}  // namespace yoke::cli
