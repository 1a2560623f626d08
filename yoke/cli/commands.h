// The table of all commands. Adding one: a file with its function, its name here, its line in commands.cc.
#pragma once
#include <vector>

#include "yoke/cli/command.h"

namespace yoke {

std::vector<Command> command_table();

Command cluster_command();
Command completion_command();
Command help_command();
Command man_command();
Command version_command();

// What `yoke` alone says: where you stand and the next step.
int say_where_you_stand(Session& session);

}  // namespace yoke
