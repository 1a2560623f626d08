#include "yoke/base/run_at_terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process_start.h"
#include "yoke/base/result.h"

namespace yoke {
namespace {

class IgnoredCtrlC {
 public:
  IgnoredCtrlC() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_);
  }
  IgnoredCtrlC(const IgnoredCtrlC&) = delete;
  IgnoredCtrlC& operator=(const IgnoredCtrlC&) = delete;
  ~IgnoredCtrlC() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

UniqueFd copy_of_stream(int stream) {
  UniqueFd copy(fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return copy ? std::move(copy) : above_standard(open_file("/dev/null", O_RDWR));
}

pid_t start(const TerminalCommand& command, const UniqueFd& input) {
  ChildPlan plan{.program = command.argv.front(), .argv = command.argv, .environment = {}};
  for (char** entry = environ; entry && *entry; ++entry) plan.environment.emplace_back(*entry);
  if (command.folder) plan.folder = command.folder->native();
  const UniqueFd out = copy_of_stream(STDOUT_FILENO);
  const UniqueFd err = copy_of_stream(STDERR_FILENO);
  plan.input = input.get();
  plan.out = out.get();
  plan.err = err.get();
  plan.session = ChildPlan::Session::kOurs;
  const StartedChild child = start_child(plan);
  if (child.failure) throw system_error(child.failure->error_number, fmt::format("cannot start {}", plan.program));
  return child.pid;
}

pid_t start_with_input(const TerminalCommand& command) {
  if (!command.input) return start(command, copy_of_stream(STDIN_FILENO));
  Pipe pipe = make_pipe();
  const pid_t child = start(command, pipe.read);
  pipe.read.reset();
  // One that ended without reading it has an exit status that says why.
  static_cast<void>(try_to([&] {
    write_all(pipe.write, *command.input, command.argv.front());
    return true;
  }));
  return child;
}

}  // namespace

int run_at_terminal(const TerminalCommand& command) {
  std::optional<IgnoredCtrlC> ignored;
  if (command.ctrl_c == TerminalCommand::CtrlC::kProgram) ignored.emplace();
  const int interrupts = interrupts_received();
  int passed_on = interrupts;
  const pid_t child = start_with_input(command);
  const int status = wait_for_child(child, [&] {
    const int received = interrupts_received();
    if (received != passed_on && interrupt_signal() != SIGINT) kill(child, SIGTERM);
    passed_on = received;
  });
  if (interrupts_received() != interrupts) throw_if_interrupted();
  return exit_status_of(status);
}

}  // namespace yoke
