#include "yoke/job/supervised_rank.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/process_start.h"
#include "yoke/base/text.h"
#include "yoke/job/rank_place.h"

namespace yoke::job {
using namespace literals;
namespace {

// Output still in the pipes when the tree is gone is read; any other process that holds them is not waited for longer.
constexpr Seconds kOutputLimit{1};
// A debugger that attaches, or a shell's job control, stops a process for a moment only.
constexpr Seconds kStandstillTime{0.25};

std::vector<std::string> rank_environment(const RankStart& start, const std::string& token, int line_fd) {
  Environment all = environment_now();
  for (const Variable& variable : start.environment) all[variable.name] = variable.value;
  all["TORCHELASTIC_RESTART_COUNT"] = std::to_string(start.restarts);
  all["YOKE_JOB_FD"] = std::to_string(line_fd);
  std::string& tokens = all[std::string(kProcessTokenVariable)];
  tokens += tokens.empty() ? token : ":" + token;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

Error start_error(const ChildFailure& failure, const StartRanks& job) {
  const std::string why = strerror(failure.error_number);
  if (failure.step == ChildFailure::Step::kFolder) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("the folder {} cannot be used on {}: {}", printable(job.folder.value_or("")), job.node, why),
        "make it there, or name another with --folder");
  }
  const std::string program = printable(job.argv.front());
  if (failure.error_number == ENOENT || failure.error_number == ENOTDIR) {
    return Error(ErrorCode::kNotFound, fmt::format("the program '{}' was not found on {}", program, job.node),
                 "install it there, or give its whole path");
  }
  return Error(
      failure.error_number == EACCES ? ErrorCode::kPermission : ErrorCode::kUnsupported,
      fmt::format("the program '{}' cannot be run on {}: {}", program, job.node, why),
      "is it a program for that machine, and executable (chmod +x)? A script needs a first line such as #!/bin/sh");
}

std::string own_program() {
  std::string path(4096, '\0');
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size < 0) throw system_error(errno, "cannot find our own program");
  path.resize(static_cast<std::size_t>(size));
  // A program that was replaced while we run has no name any more, but can still be run.
  return access(path.c_str(), X_OK) == 0 ? path : "/proc/self/exe";
}

}  // namespace

SupervisedRank::SupervisedRank(const StartRanks& job, const RankStart& start)
    : rank_(start.rank), token_(random_token_hex(16)) {
  Pipe out_pipe = make_pipe();
  Pipe err_pipe = make_pipe();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw system_error(errno, "cannot make a socket");
  UniqueFd ours(pair[0]);
  UniqueFd theirs = above_standard(UniqueFd(pair[1]));
  const UniqueFd input = above_standard(open_file("/dev/null", O_RDONLY));
  const StartedChild child =
      start_child({.program = job.own_program ? own_program() : job.argv.front(),
                   .argv = job.argv,
                   .environment = rank_environment(start, token_, theirs.get()),
                   .folder = job.folder,
                   .folder_use = job.folder_required ? ChildPlan::Folder::kRequired : ChildPlan::Folder::kIfThere,
                   .input = input.get(),
                   .out = out_pipe.write.get(),
                   .err = err_pipe.write.get(),
                   .further = theirs.get(),
                   .orphan = ChildPlan::Orphan::kIsKilled});
  if (child.failure) throw start_error(*child.failure, job);
  pid_ = child.pid;
  tree_.emplace(pid_, token_);
  line.emplace(std::move(ours));
  out = std::move(out_pipe.read);
  err = std::move(err_pipe.read);
  set_nonblocking(out);
  set_nonblocking(err);
}

void SupervisedRank::note_exit(int wait_status) { wait_status_ = wait_status; }

void SupervisedRank::end(EndMode manner, Seconds grace) {
  if (!wait_status_) ended_by_us_ = true;
  const Deadline wanted = Deadline::after(manner == EndMode::kAtOnce ? 0_s : grace);
  const bool first = !kill_at_;
  if (first || wanted.remaining() < kill_at_->remaining()) kill_at_ = wanted;
  if (!first || manner == EndMode::kAtOnce) return;
  tree_->look();
  send(SIGTERM);
  send(SIGCONT);
}

void SupervisedRank::send(int signal_number) {
  for (const ProcessId& process : tree_->living()) kill(process.pid, signal_number);
}

bool SupervisedRank::take_turn() {
  if (output_end_) return true;
  const Instant now = real_clock().now();
  if (now < next_turn_) return false;
  next_turn_ = now + to_chrono(10_ms);  // each look reads all of /proc
  tree_->look();
  if (tree_->living().empty() && wait_status_) {
    output_end_ = Deadline::after(kOutputLimit);
    return true;
  }
  if (kill_at_ && kill_at_->expired()) send(SIGKILL);
  return false;
}

bool SupervisedRank::is_closed() const { return output_end_ && ((!out && !err) || output_end_->expired()); }

void SupervisedRank::hold_output_end() {
  if (output_end_) output_end_ = Deadline::after(kOutputLimit);
}

void SupervisedRank::mark_stalled(bool stopped) {
  if (!stopped) {
    stopped_since_.reset();
  } else if (!stopped_since_) {
    stopped_since_ = real_clock().now();
  }
}

bool SupervisedRank::is_stalled() const {
  return stopped_since_ && to_seconds(real_clock().now() - *stopped_since_) >= kStandstillTime;
}

}  // namespace yoke::job
