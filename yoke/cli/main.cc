#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "yoke/base/interrupt.h"
#include "yoke/cli/agent_actions.h"
#include "yoke/cli/bench_ranks.h"
#include "yoke/cli/cli.h"
#include "yoke/job/supervisor.h"
#include "yoke/lab/lab.h"
#include "yoke/serve/engine_task.h"

int main(int argc, char** argv) {
  // Descriptors 0 to 2 must be taken, or the next file opened becomes "standard output". A closed one is filled with
  // something that cannot be used, so that writing to it is still an error.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd) return EXIT_FAILURE;
  }
  yoke::install_interrupt_handlers();
  if (const auto status = yoke::run_agent_part({argv + 1, argv + argc})) return *status;
  if (const auto status = yoke::run_lab_part({argv + 1, argv + argc})) return *status;
  if (const auto status = yoke::run_job_part({argv + 1, argv + argc})) return *status;
  if (const auto status = yoke::run_bench_part({argv + 1, argv + argc})) return *status;
  if (const auto status = yoke::run_engine_part({argv + 1, argv + argc})) return *status;
  if (const auto status = yoke::run_recovery_part({argv + 1, argv + argc})) return *status;
  return yoke::run_command_line({argv + 1, argv + argc});
}
