#include "yoke/cli/commands.h"

namespace yoke {

std::vector<CommandRow> command_table() {
  return {
      bench_command(), cluster_command(), completion_command(), help_command(),     job_command(),
      lab_command(),   man_command(),     model_command(),      tokenize_command(), version_command(),
  };
}

}  // namespace yoke
