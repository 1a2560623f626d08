#include "yoke/cli/commands.h"

namespace yoke {

std::vector<CommandRow> command_table() {
  return {
      cluster_command(), completion_command(), help_command(), lab_command(), man_command(), version_command(),
  };
}

}  // namespace yoke
