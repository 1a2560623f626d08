#include "yoke/lab/enter.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/text.h"
#include "yoke/lab/cgroup.h"
#include "yoke/lab/node.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/plain.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
namespace {

constexpr int kCannotStart = 126;

// What a node has of its own.
constexpr int kNodeNamespaces = CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS;

[[noreturn]] void execute(const std::vector<std::string>& argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal_number, SIG_DFL);
  // What came before that was heard by our handlers, and the program would not know of it.
  if (interrupt_signal() != 0) _exit(128 + interrupt_signal());
  unsetenv(std::string(kProcessTokenVariable).c_str());  // what it leaves running stays, as on any machine
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  const std::string text =
      fmt::format("yoke: cannot run '{}' in the node: {}\n", printable(argv.front()), strerror(errno));
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* nowhere left to say it */
  }
  _exit(errno == ENOENT ? 127 : kCannotStart);
}

[[noreturn]] void run_program(const fs::path& folder, const std::vector<std::string>& argv) {
  if (chdir(folder.c_str()) != 0 && chdir("/root") != 0) _exit(kCannotStart);
  setenv("HOME", "/root", 1);
  setenv("USER", "root", 1);
  setenv("LOGNAME", "root", 1);
  setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  unsetenv("XDG_RUNTIME_DIR");
  execute(argv);
}

[[noreturn]] void run_plain_program(const std::string& lab, const LabNode& node, const std::vector<std::string>& argv) {
  for (const auto& [name, value] : plain_environment(lab, node)) setenv(name.c_str(), value.c_str(), 1);
  execute(argv);
}

// Waits for the child, and passes on the signals that came to us.
int wait_for(pid_t child) {
  int passed_on = 0;
  const int status = wait_for_child(child, [&] {
    const int signal_number = interrupt_signal();
    if (signal_number == 0 || signal_number == passed_on) return;
    // The terminal gives Ctrl-C to the child itself: a second one would count as another.
    if (signal_number == SIGINT && isatty(STDIN_FILENO) != 0) return;
    passed_on = signal_number;
    kill(child, signal_number);
  });
  return exit_status_of(status);
}

// In a child of ours: takes on the node's namespaces and runs the program in a child of its own, which alone is in the
// node's PID namespace.
[[noreturn]] void enter_and_run(const std::string& lab, const LabNode& node, const LabPart& first,
                                const std::vector<std::string>& argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const fs::path folder = fs::current_path();
    if (const auto group = memory_group(lab, node.number); group && fs::exists(group->folder)) group->join();
    // A process that shares its working folder with another thread (a sanitizer's) may not change its mounts.
    if (unshare(CLONE_FS) != 0) throw system_error(errno, fmt::format("cannot enter {}", node.name));
    first.enter(kNodeNamespaces);
    _exit(wait_for(fork_call([&]() -> int { run_program(folder, argv); })));
  } catch (const std::exception& failure) {
    const std::string text = fmt::format("yoke: {}\n", failure.what());
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* nowhere left to say it */
    }
    _exit(kCannotStart);
  }
}

}  // namespace

int run_in_node(const std::string& lab, const LabNode& node, const std::vector<std::string>& argv) {
  const std::optional<LabPart> first = find_part(lab, node.number);
  if (!first) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{} is powered off", node.name),
                fmt::format("'yoke lab fault power-on --node {}' starts it", node.name));
  }
  const bool plain = load_layout(lab).plain;
  return wait_for(fork_call([&]() -> int {
    if (plain) run_plain_program(lab, node, argv);
    enter_and_run(lab, node, *first, argv);
  }));
}

std::optional<InNode> in_node() {
  const auto mark = DiskTree().read(kNodeMarkFile);
  const char* folder = std::getenv(kPlainFolderVariable);
  const char* node = std::getenv(kPlainNodeVariable);
  if (!mark && folder && node) return InNode{fs::path(folder).parent_path().filename(), node};
  if (!mark) return std::nullopt;
  const std::vector<std::string> lines = split(*mark, '\n');
  if (lines.size() < 2) return std::nullopt;
  return InNode{lines[0], lines[1]};
}

}  // namespace yoke::lab
