#include "yoke/cli/commands.h"

namespace yoke {

std::vector<CommandRow> command_table() {
  return {
      bench_command(), chat_command(),  check_command(), cluster_command(),  completion_command(), gameday_command(),
      help_command(),  job_command(),   lab_command(),   link_command(),     man_command(),        model_command(),
      plan_command(),  probe_command(), run_command(),   tokenize_command(), verify_command(),     version_command(),
  };
}

}  // namespace yoke
