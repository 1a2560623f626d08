// The table of all commands. Adding one: a file with its function, its name here, its line in commands.cc.
#pragma once
#include <vector>

#include "yoke/cli/command.h"

namespace yoke {

std::vector<CommandRow> command_table();

CommandRow cluster_command();
CommandRow cluster_reach_command();  // of cluster_command
CommandRow completion_command();
CommandRow help_command();
CommandRow lab_command();
CommandRow lab_fault_command();  // of lab_command
CommandRow man_command();
CommandRow version_command();

// What `yoke` alone says: where you stand and the next step.
int say_where_you_stand(Session& session);

}  // namespace yoke
