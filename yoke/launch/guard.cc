#include "yoke/launch/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"
#include "yoke/base/process_start.h"
#include "yoke/base/process_tree.h"
#include "yoke/base/result.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/launch/canary.h"
#include "yoke/launch/guard_group.h"
#include "yoke/launch/memory_watch.h"
#include "yoke/launch/peer_watch.h"
#include "yoke/launch/progress.h"

extern char** environ;

namespace yoke::launch {
namespace {

using Steady = std::chrono::steady_clock;

constexpr Seconds kOthersFirst{3};  // so much later a node ends whose ranks all wait for another node's

void say(std::string_view text) { fmt::print(stderr, "yoke guard: {}\n", terminal_safe(text)); }

void wait_for_ports(const std::vector<std::string>& endpoints, Seconds limit) {
  const Deadline deadline = Deadline::after(limit);
  for (const std::string& text : endpoints) {
    const Endpoint endpoint = value_or_throw(parse_endpoint(text));
    while (!try_to([&] { return connect_tcp(endpoint, {}, Deadline::after(Seconds{1})); })) {
      throw_if_interrupted();
      if (deadline.expired()) {
        throw Error(ErrorCode::kTimeout, fmt::format("nothing answers at {}", text),
                    "the other node's process did not start: its lines say why");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
}

std::vector<std::string> environment_with(const std::string& token) {
  std::vector<std::string> all;
  std::string tokens = token;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view line = *entry;
    if (line.starts_with(fmt::format("{}=", kProcessTokenVariable))) {
      tokens = std::string(line.substr(kProcessTokenVariable.size() + 1)) + " " + token;
    } else {
      all.emplace_back(line);
    }
  }
  all.push_back(fmt::format("{}={}", kProcessTokenVariable, tokens));
  return all;
}

// Where the engine is yoke itself, its rank speaks with the job's supervisor over the line that this process was given.
int job_line() {
  const char* text = std::getenv("YOKE_JOB_FD");
  const int fd = text ? std::atoi(text) : -1;
  return fd > STDERR_FILENO && fcntl(fd, F_GETFD) >= 0 ? fd : -1;
}

pid_t start_engine(const std::vector<std::string>& argv, const std::string& token) {
  const UniqueFd input = above_standard(open_file("/dev/null", O_RDONLY));
  const UniqueFd out = above_standard(UniqueFd(dup(STDOUT_FILENO)));
  const UniqueFd err = above_standard(UniqueFd(dup(STDERR_FILENO)));
  // This program under its name is this very program: it may lie in no folder of PATH here.
  const bool own = argv.front() == "yoke";
  const StartedChild child = start_child({.program = own ? "/proc/self/exe" : argv.front(),
                                          .argv = argv,
                                          .environment = environment_with(token),
                                          .input = input.get(),
                                          .out = out.get(),
                                          .err = err.get(),
                                          .further = own ? job_line() : -1,
                                          .orphan = ChildPlan::Orphan::kIsKilled});
  if (!child.failure) return child.pid;
  throw system_error(child.failure->error_number, fmt::format("cannot start '{}'", printable(argv.front(), 80)),
                     "is the engine installed on this node?");
}

// The letter of its state and its name.
struct ProcessState {
  char letter = '?';
  std::string name;
};
std::optional<ProcessState> state_of(pid_t pid) {
  const auto stat = try_to([&] { return read_file(fmt::format("/proc/{}/stat", pid), Bytes{4096}); });
  if (!stat) return std::nullopt;
  const std::size_t open = stat->find('('), close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= stat->size()) return std::nullopt;
  return ProcessState{.letter = (*stat)[close + 2], .name = stat->substr(open + 1, close - open - 1)};
}

class Guard {
 public:
  explicit Guard(const GuardOptions& options)
      : options_(options), token_(random_token_hex(8)), pid_(start_engine(options.argv, token_)), tree_(pid_, token_) {
    if (options_.limit.value > 0) group_ = std::make_unique<GuardGroup>(pid_, options_.limit);
    // Before the kernel takes anything else, it takes the engine.
    try_to(
        [&] { write_all(open_file(fmt::format("/proc/{}/oom_score_adj", pid_), O_WRONLY), "500", "oom_score_adj"); });
    stay_alive();
    if (options_.floor.value > 0) watch_.emplace(options_.floor, pid_);
    if (!options_.follow.empty()) head_.emplace(value_or_throw(parse_endpoint(options_.follow)));
    if (!options_.progress.empty()) steps_.emplace(options_.progress, options_.container);
    if (options_.canary_port) canary_.emplace(*options_.canary_port, options_.canary_model);
  }
  ~Guard() { end_all(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  int run() {
    Steady::time_point next_look = Steady::now();
    for (;;) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) reaped_ = exit_status_of(status);
      if (watch_ && watch_->has_tripped()) fail_for_memory();
      if (reaped_) return *reaped_;
      throw_if_interrupted();
      if (Steady::now() >= next_look) {
        look();
        next_look = Steady::now() + std::chrono::milliseconds(500);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  void look() {
    tree_.look();
    std::vector<pid_t> pids;
    for (const ProcessId& process : tree_.living()) {
      pids.push_back(process.pid);
      const auto state = state_of(process.pid);
      if (state) note_stopped(process.pid, *state);
    }
    if (const pid_t contained = container_process()) pids.push_back(contained);
    if (watch_) watch_->set_processes(pids);
    look_at_head();
    look_at_steps();
    inspect_canary();
  }

  // 'T' is stopped by a signal, 't' by a debugger: that is somebody's wish.
  void note_stopped(pid_t pid, const ProcessState& state) {
    if (state.letter != 'T') {
      stopped_.erase(pid);
      return;
    }
    const auto since = stopped_.try_emplace(pid, Steady::now()).first->second;
    const double seconds = std::chrono::duration<double>(Steady::now() - since).count();
    if (seconds < options_.stopped_limit.value) return;
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("the process {} ({}) has been stopped for {:.0f} s", pid, printable(state.name, 40), seconds),
        "a signal (SIGSTOP) stopped it; the engine is ended, since the other ranks wait for it");
  }

  void look_at_head() const {
    if (!head_ || head_->silent_for() < options_.follow_limit) return;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the head has not answered at {} for {:.0f} s", options_.follow, head_->silent_for().value),
                "a rank cannot rejoin another head; the engine is ended here, to be started again with it");
  }

  // Where all ranks of this node wait, the node that they wait for speaks first.
  void look_at_steps() {
    if (!steps_) return;
    steps_->look();
    const Seconds limit = steps_->has_begun() ? options_.progress_limit : options_.start_limit;
    const Seconds silent = steps_->silent_for();
    if (silent < limit) return;
    const StepWatch::Report report = steps_->report();
    if (report.others_hang && silent < limit + kOthersFirst) return;
    throw Error(ErrorCode::kTimeout, report.text,
                "the run is ended on all nodes; --progress says how long a step may take");
  }

  void inspect_canary() {
    if (!canary_) return;
    if (canary_->has_answered()) {
      if (!said_ready_) say(fmt::format("ready: the first token came after {:.1f} s", canary_->ready_after().value));
      said_ready_ = true;
      if (canary_->silent_for().value < options_.canary_limit.value) return;
      throw Error(ErrorCode::kTimeout,
                  fmt::format("the engine has made no token for {:.0f} s, although its process runs",
                              canary_->silent_for().value),
                  "a rank hangs; the engine is ended on all nodes");
    }
    if (canary_->silent_for().value < options_.start_limit.value) return;
    throw Error(ErrorCode::kTimeout,
                fmt::format("the engine made no token within {:.0f} s of its start", options_.start_limit.value),
                "its own lines above say how far it came");
  }

  pid_t container_process() {
    if (options_.container.empty() || contained_ > 0) return contained_;
    const auto asked = try_to([&] {
      return run_command(
          {.argv = {"docker", "inspect", "--format", "{{.State.Pid}}", options_.container}, .timeout = Seconds{2}});
    });
    if (asked && asked->ok()) contained_ = std::atoi(asked->out.c_str());
    return contained_;
  }
  static Outcome run_command(const Command& command) { return yoke::run(command); }

  [[noreturn]] void fail_for_memory() {
    end_all();
    const std::string advice = options_.lower.empty() ? "give the engine less memory"
                                                      : fmt::format("lower {}", fmt::join(options_.lower, ", then "));
    const std::string why = watch_->by_pressure() ? "all processes waited for memory (PSI), and " : "";
    throw Error(
        ErrorCode::kExhausted,
        fmt::format("the engine was stopped: {}{} of memory were available, the floor is {}. That is {} less than when "
                    "the engine started",
                    why, to_string(watch_->available_at_trip()), to_string(options_.floor),
                    to_string(watch_->used_since_start())),
        advice);
  }

  // SIGTERM first, unless memory is short: a clean end is slower than the allocation.
  void end_all() noexcept {
    const bool hurry = watch_ && watch_->has_tripped();
    if (!options_.container.empty()) {
      try_to([&] { return run_command({.argv = {"docker", "kill", options_.container}, .timeout = Seconds{5}}); });
    }
    const auto start = Steady::now();
    for (bool first = true;; first = false) {
      tree_.look();
      if (!reaped_) {
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) == pid_) reaped_ = exit_status_of(status);
      }
      if (tree_.living().empty() && reaped_) return;
      const auto passed = Steady::now() - start;
      if (passed > std::chrono::seconds(10)) return;
      const bool gently = !hurry && passed < std::chrono::seconds(1);
      for (const ProcessId& process : tree_.living()) {
        if (gently && !first) continue;
        kill(process.pid, gently ? SIGTERM : SIGKILL);
        if (gently) kill(process.pid, SIGCONT);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const GuardOptions& options_;
  std::string token_;
  pid_t pid_;
  ProcessTree tree_;
  std::unique_ptr<GuardGroup> group_;
  std::optional<MemoryWatch> watch_;
  std::optional<PeerWatch> head_;
  std::optional<StepWatch> steps_;
  std::optional<Canary> canary_;
  std::optional<int> reaped_;
  std::map<pid_t, Steady::time_point> stopped_;
  pid_t contained_ = 0;
  bool said_ready_ = false;
};

// A folder with files, made for the program by its shell. Nothing below it is followed: one that holds more stays.
class FolderRemoval {
 public:
  explicit FolderRemoval(std::filesystem::path folder) : folder_(std::move(folder)) {}
  FolderRemoval(const FolderRemoval&) = delete;
  FolderRemoval& operator=(const FolderRemoval&) = delete;
  ~FolderRemoval() {
    namespace fs = std::filesystem;
    std::error_code failure;
    if (folder_.empty() || fs::symlink_status(folder_, failure).type() != fs::file_type::directory) return;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failure)) {
      if (entry.symlink_status(failure).type() != fs::file_type::directory) fs::remove(entry.path(), failure);
    }
    fs::remove(folder_, failure);
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace

Bytes usual_floor(Bytes total, bool unified) {
  constexpr std::int64_t kGib = std::int64_t{1} << 30;
  if (unified) return Bytes{std::min<std::int64_t>(8 * kGib, total.value / 8)};
  return Bytes{std::min<std::int64_t>(4 * kGib, total.value / 32)};
}

int run_guard(const GuardOptions& options) {
  if (options.argv.empty())
    throw Error(ErrorCode::kUsage, "there is no program to guard", "yoke launch guard -- PROGRAM");
  const FolderRemoval removal(options.remove);
  wait_for_ports(options.wait_for, options.start_limit);
  Guard guard(options);
  return guard.run();
}

}  // namespace yoke::launch
