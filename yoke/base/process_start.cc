#include "yoke/base/process_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

std::map<std::string, std::string> full_environment(const Command& command, const std::string& token) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const auto& [name, value] : command.environment) all[name] = value;
  // Behind what we carry ourselves: the one that kills us finds our children too.
  std::string& tokens = all[std::string(kProcessTokenVariable)];
  tokens += tokens.empty() ? token : ":" + token;
  return all;
}

// Debian's packages of the programs that yoke starts and that a small system may lack.
struct PackageOf {
  std::string_view program;
  std::string_view package;
};
constexpr PackageOf kPackages[] = {{"ssh", "openssh-client"},
                                   {"ssh-keygen", "openssh-client"},
                                   {"ssh-keyscan", "openssh-client"},
                                   {"sshd", "openssh-server"},
                                   {"ip", "iproute2"},
                                   {"tc", "iproute2"},
                                   {"ping", "iputils-ping"},
                                   {"curl", "curl"},
                                   {"mpirun", "openmpi-bin"},
                                   {"newuidmap", "uidmap"}};

std::string how_to_install(std::string_view program) {
  for (const PackageOf& row : kPackages) {
    if (row.program == program) return fmt::format("sudo apt-get install {}", row.package);
  }
  return "install it; it was looked for in PATH, /usr/local/sbin, /usr/sbin and /sbin";
}

Error cannot_start(int error_number, const std::string& program) {
  const std::string shown = printable(program);
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Error(ErrorCode::kNotFound, fmt::format("the program '{}' was not found", shown),
                   program.find('/') == std::string::npos ? how_to_install(program)
                                                          : "is it there, and the interpreter of its first line too?");
    case EACCES:
    case EPERM:
      return Error(ErrorCode::kPermission, fmt::format("the program '{}' may not be run", shown),
                   "is it a program, executable for this user (chmod +x), and not on a volume mounted noexec?");
    case ENOEXEC:
      return Error(ErrorCode::kUnsupported, fmt::format("'{}' is no program for this machine", shown),
                   "was it built for another processor? A script needs a first line such as #!/bin/sh");
    default:
      return system_error(error_number, fmt::format("cannot start '{}'", shown));
  }
}

// As execvp does it, but here, before fork: execvp is not safe after a fork in a program with threads. The first
// existing file that is executable wins; EACCES is reported only where no other is.
struct FoundProgram {
  std::string file;
  int error_number = 0;
};

FoundProgram find_program(const std::string& name, const std::vector<std::string>& environment) {
  if (name.find('/') != std::string::npos) return {name};
  std::string folders = "/usr/bin:/bin";
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) folders = entry.substr(5);
  }
  int failure = ENOENT;
  for (const std::string& folder : split(name.empty() ? "" : folders, ':')) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    struct stat status {};
    if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (access(file.c_str(), X_OK) == 0) return {std::move(file)};
    failure = EACCES;
  }
  // Debian gives ordinary users a PATH without these, and ip, tc, sshd and ldconfig are there.
  for (const char* folder : {"/usr/local/sbin", "/usr/sbin", "/sbin"}) {
    std::string file = fmt::format("{}/{}", folder, name);
    if (!name.empty() && failure == ENOENT && access(file.c_str(), X_OK) == 0) return {std::move(file)};
  }
  return {"", failure};
}

// Everything that the child needs, made before fork: after it only async-signal-safe calls are allowed.
struct ForkPlan {
  const ChildPlan& child;
  const char* program;
  char** argv;
  char** environment;
  int failure;
  pid_t parent;
};

using Step = ChildFailure::Step;

[[noreturn]] void give_up(const ForkPlan& plan, Step step) {
  const ChildFailure failure{step, errno};
  while (write(plan.failure, &failure, sizeof failure) < 0 && errno == EINTR) {
  }
  _exit(127);
}

// Handlers of ours must not run here, and what we ignore (SIGPIPE) the program must not inherit.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0) continue;
    const bool inherited_on_purpose = action.sa_handler == SIG_IGN && number == SIGHUP;  // nohup
    if (action.sa_handler == SIG_DFL || inherited_on_purpose) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
  }
}

// In the child.
[[noreturn]] void become_program(const ForkPlan& plan) {
  const ChildPlan& child = plan.child;
  // Fails only for a group leader, which a new child is not.
  if (child.session == ChildPlan::Session::kNew) setsid();
  if (child.orphan == ChildPlan::Orphan::kIsKilled) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127);  // it was killed before we asked to die with it
  }
  reset_signals();
  if (child.folder && chdir(child.folder->c_str()) != 0 && child.folder_use == ChildPlan::Folder::kRequired)
    give_up(plan, Step::kFolder);
  if (dup2(child.input, STDIN_FILENO) < 0 || dup2(child.out, STDOUT_FILENO) < 0 || dup2(child.err, STDERR_FILENO) < 0) {
    give_up(plan, Step::kStreams);
  }
#if defined(SYS_close_range)
  // Descriptors that some library opened without close-on-exec stay ours, too. Needs Linux 5.11; else they leak.
  constexpr unsigned kCloseRangeCloexec = 1U << 2U;
  syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, kCloseRangeCloexec);
#endif
  if (child.further >= 0 && fcntl(child.further, F_SETFD, 0) != 0) give_up(plan, Step::kStreams);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  execve(plan.program, plan.argv, plan.environment);
  give_up(plan, Step::kProgram);
}

// The pid, with all signals held back around the fork so that none meets our handlers in the child.
pid_t fork_into(const ForkPlan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) become_program(plan);
  const int failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw system_error(failure, fmt::format("cannot start '{}'", printable(plan.child.program)));
  return pid;
}

// Nothing once exec has closed the pipe.
std::optional<ChildFailure> await_start(const UniqueFd& pipe) {
  ChildFailure failure{};
  for (;;) {
    const ssize_t count = read(pipe.get(), &failure, sizeof failure);
    if (count < 0 && errno == EINTR) continue;
    if (count != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
    return failure;
  }
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

Error start_error(const ChildFailure& failure, const Command& command) {
  if (failure.step == Step::kFolder) {
    return system_error(failure.error_number, fmt::format("cannot run '{}' in the folder {}",
                                                          printable(command.argv[0]), command.folder->native()));
  }
  if (failure.step == Step::kStreams) return system_error(failure.error_number, "cannot connect a program's streams");
  return cannot_start(failure.error_number, command.argv[0]);
}

}  // namespace

UniqueFd above_standard(UniqueFd fd) {
  if (fd.get() > STDERR_FILENO) return fd;
  UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!moved) throw system_error(errno, "cannot duplicate a descriptor");
  return moved;
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe");
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  return {above_standard(std::move(read)), above_standard(std::move(write))};
}

void set_nonblocking(const UniqueFd& fd) {
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    throw system_error(errno, "cannot make a pipe non-blocking");
  }
}

StartedChild start_child(const ChildPlan& plan) {
  const FoundProgram program = find_program(plan.program, plan.environment);
  if (program.error_number != 0) return {.failure = ChildFailure{Step::kProgram, program.error_number}};
  std::vector<std::string> argv = plan.argv;
  std::vector<std::string> environment = plan.environment;
  std::vector<char*> argv_pointers = pointers(argv);
  std::vector<char*> environment_pointers = pointers(environment);
  Pipe failure = make_pipe();
  const pid_t pid = fork_into({.child = plan,
                               .program = program.file.c_str(),
                               .argv = argv_pointers.data(),
                               .environment = environment_pointers.data(),
                               .failure = failure.write.get(),
                               .parent = getpid()});
  failure.write.reset();
  const std::optional<ChildFailure> failed = await_start(failure.read);
  while (failed && waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {.pid = failed ? -1 : pid, .failure = failed};
}

StartedProgram start_program(const Command& command, const std::string& token) {
  YOKE_CHECK(!command.argv.empty());
  for (const std::string& argument : command.argv) {
    if (argument.find('\0') != std::string::npos) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("an argument of '{}' holds a zero byte", printable(command.argv[0])));
    }
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : full_environment(command, token))
    entries.push_back(fmt::format("{}={}", name, value));

  const bool piped = command.input_mode == InputMode::kPipe || (!command.input.empty() && !command.input_file);
  Pipe input;
  if (piped) {
    input = make_pipe();
  } else {
    input.read = above_standard(open_file(command.input_file.value_or("/dev/null"), O_RDONLY));
  }
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  if (piped) set_nonblocking(input.write);
  set_nonblocking(out.read);
  set_nonblocking(err.read);
  const StartedChild child =
      start_child({.program = command.argv[0],
                   .argv = command.argv,
                   .environment = std::move(entries),
                   .folder = command.folder ? std::optional(command.folder->native()) : std::nullopt,
                   .input = input.read.get(),
                   .out = out.write.get(),
                   .err = err.write.get()});
  if (child.failure) throw start_error(*child.failure, command);
  return {child.pid, std::move(input.write), std::move(out.read), std::move(err.read)};
}

}  // namespace yoke
