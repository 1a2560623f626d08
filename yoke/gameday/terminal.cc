#include "yoke/gameday/terminal.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"

namespace yoke {
namespace {

// The terminal sends Ctrl-C to its whole foreground group, us included: meanwhile it is not meant for us.
class WithoutCtrlC {
 public:
  WithoutCtrlC() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &before_);
  }
  WithoutCtrlC(const WithoutCtrlC&) = delete;
  WithoutCtrlC& operator=(const WithoutCtrlC&) = delete;
  ~WithoutCtrlC() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

pid_t spawn(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t own;
  sigemptyset(&own);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&own, signal_number);
  posix_spawnattr_setsigdefault(&attributes, &own);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = -1;
  const int failure = posix_spawn(&child, pointers.front(), &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) throw system_error(failure, fmt::format("cannot start {}", argv.front()));
  return child;
}

}  // namespace

int run_in_terminal(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  const WithoutCtrlC held;
  const int interrupts = interrupts_received();
  const pid_t child = spawn(argv, folder);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw system_error(errno, fmt::format("cannot wait for {}", argv.front()));
    if (interrupts_received() != interrupts) kill(child, SIGTERM);
  }
  if (interrupts_received() != interrupts) throw_if_interrupted();
  return exit_status_of(status);
}

}  // namespace yoke
