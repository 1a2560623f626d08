#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "yoke/base/interrupt.h"
#include "yoke/cli/commands.h"

int main(int argc, char** argv) {
  // Descriptors 0 to 2 must be taken, or the next file opened becomes "standard output". A closed one is filled with
  // something that cannot be used, so that writing to it is still an error.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd) return EXIT_FAILURE;
  }
  yoke::install_interrupt_handlers();
  return yoke::cli::run_command_line({argv + 1, argv + argc});
}
