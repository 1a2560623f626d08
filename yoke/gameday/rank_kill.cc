#include "yoke/gameday/rank_kill.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/text.h"
#include "yoke/rank/rank_part.h"
#include "yoke/serve/engine_task.h"

namespace yoke::gameday {
namespace {

using namespace literals;

// By which the process of a rank is known: the words of its command line.
const std::string kRankWords = fmt::format("{} {}", rank::kRankWord, serve::kEngineKind);

bool descends_from(pid_t process, pid_t ancestor) {
  while (process > 1 && process != ancestor) {
    const auto stat = DiskTree().read(fmt::format("/proc/{}/stat", process));
    const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;  // a name may hold anything
    if (name_end == std::string::npos) return false;
    const std::vector<std::string> fields = split(trim(std::string_view(*stat).substr(name_end + 1)), ' ');
    process = fields.size() > 1 ? std::atoi(fields[1].c_str()) : 0;
  }
  return process == ancestor;
}

// The rank of this very command that runs on this machine: never one of somebody else's engine.
pid_t find_rank_below(pid_t command) {
  for (const std::string& name : DiskTree().list("/proc")) {
    const pid_t pid = std::atoi(name.c_str());
    if (pid <= 0) continue;
    std::string words = DiskTree().read(fmt::format("/proc/{}/cmdline", pid)).value_or("");
    std::replace(words.begin(), words.end(), '\0', ' ');
    if (words.find(kRankWords) != std::string::npos && descends_from(pid, command)) return pid;
  }
  throw Error(ErrorCode::kNotFound, "no rank of the answer runs on this machine",
              "begin the game day on a node of the cluster");
}

}  // namespace

// The shell's own command line must not have the words that it looks for.
RankKill::RankKill(const Environment& environment, PhaseRun& phase_run) : phase_run_(phase_run) {
  if (!environment.lab() || environment.why_no_faults()) return;
  node_ = environment.cluster().nodes.back().name;
  waiting_.emplace(Command{.argv = {environment.options().program, "lab", "exec", "--name", *environment.lab(), node_,
                                    "--", "sh", "-c", "read -r words; exec pkill -KILL -f \"$words\""},
                           .folder = environment.folder(),
                           .input_mode = InputMode::kPipe});
}

void RankKill::happen(pid_t engine_owner) {
  if (!waiting_) {
    const pid_t rank = find_rank_below(engine_owner);
    phase_run_.print(fmt::format("$ kill -KILL {}", rank));
    if (kill(rank, SIGKILL) != 0) throw system_error(errno, "cannot kill the rank");
    return;
  }
  phase_run_.print(fmt::format("$ pkill -KILL -f '{}'     (on {})", kRankWords, node_));
  waiting_->write(kRankWords + "\n", Deadline::after(10_s));
  const auto outcome = waiting_->wait(Deadline::after(10_s));
  phase_run_.expect(outcome && outcome->ok(), fmt::format("the rank on {} is killed", node_));
}

}  // namespace yoke::gameday
