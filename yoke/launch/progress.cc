#include "yoke/launch/progress.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/launch/script_runner.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

std::optional<RankSteps> read_steps(const fs::path& file) {
  const std::string name = file.filename();
  RankSteps found;
  if (!name.starts_with("rank-")) return std::nullopt;
  const auto [end, failure] = std::from_chars(name.data() + 5, name.data() + name.size(), found.rank);
  if (failure != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  const auto text = try_to([&] { return read_file(file, Bytes{64}); });
  const std::vector<std::string> words = split(std::string(trim(text.value_or(""))), ' ');
  if (words.size() < 2) return std::nullopt;
  std::from_chars(words[0].data(), words[0].data() + words[0].size(), found.steps);
  std::from_chars(words[1].data(), words[1].data() + words[1].size(), found.pid);
  return found;
}

}  // namespace

std::string_view progress_runner() {
  return "# Runs a training script and counts the steps of its optimizer, for 'yoke launch guard'.\n"
         "import faulthandler, os, runpy, signal, sys, types\n"
         "import torch\n"
         "\n"
         "folder = os.path.dirname(os.path.abspath(__file__))\n"
         "file = os.path.join(folder, 'rank-' + os.environ.get('RANK', '0'))\n"
         "fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)  # in a container root writes it\n"
         "steps = 0\n"
         "\n"
         "def write_steps():\n"
         "    os.pwrite(fd, f'{steps} {os.getpid()} \\n'.encode(), 0)\n"
         "\n"
         "def count_step(*words):\n"
         "    global steps\n"
         "    steps += 1\n"
         "    write_steps()\n"
         "\n"
         "def count_by_instance(optimizer):  # PyTorch before 2.0 has no hook for all optimizers\n"
         "    make = optimizer.__init__\n"
         "    def init(self, *words, **named):\n"
         "        make(self, *words, **named)\n"
         "        step = self.step\n"
         "        def counted(self, *words, **named):\n"
         "            result = step(*words, **named)\n"
         "            count_step()\n"
         "            return result\n"
         "        self.step = types.MethodType(counted, self)\n"
         "    optimizer.__init__ = init\n"
         "\n"
         "write_steps()\n"
         "stack = open(file + '.stack', 'w')\n"
         "faulthandler.register(signal.SIGUSR2, file=stack, all_threads=False)\n"
         "try:\n"
         "    from torch.optim.optimizer import register_optimizer_step_post_hook\n"
         "    register_optimizer_step_post_hook(count_step)\n"
         "except ImportError:\n"
         "    count_by_instance(torch.optim.Optimizer)\n"
         "sys.argv = sys.argv[1:]\n"
         "sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))\n"
         "runpy.run_path(sys.argv[0], run_name='__main__')\n";
}

std::string progress_runner_path(const std::string& folder) { return folder + "/yoke_steps.py"; }

std::vector<std::string> argv_with_progress(const std::vector<std::string>& argv, const std::string& folder) {
  return with_runner(argv, progress_runner_path(folder),
                     Error(ErrorCode::kUsage, "--progress needs a script that ends in .py after '--'",
                           "the steps of a module ('-m name') are not counted: leave out --progress"));
}

// faulthandler writes the innermost call first: '  File "/x/train.py", line 12 in load'.
RankPlace read_stack(std::string_view stack) {
  RankPlace found;
  for (const std::string& line : split(std::string(stack), '\n')) {
    const std::size_t open = line.find("File \""), close = line.find("\", line ");
    if (open == std::string::npos || close == std::string::npos) continue;
    const std::string file = line.substr(open + 6, close - open - 6);
    const bool is_library = file.find("/torch/") != std::string::npos;
    found.waits = found.waits || file.find("/torch/distributed/") != std::string::npos ||
                  file.find("/torch/autograd/") != std::string::npos;
    if (is_library || file.starts_with('<')) continue;
    std::string rest = line.substr(close + 8);  // "12 in load"
    found.place = fs::path(file).filename().native() + ":" + rest;
    break;
  }
  return found;
}

void StepWatch::look() {
  ranks_.clear();
  std::int64_t sum = 0;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failure)) {
    if (const auto rank = read_steps(entry.path())) {
      ranks_.push_back(*rank);
      sum += rank->steps;
    }
  }
  std::sort(ranks_.begin(), ranks_.end(), [](const RankSteps& a, const RankSteps& b) { return a.rank < b.rank; });
  if (sum != std::exchange(sum_, sum)) last_ = Clock::now();
}

Seconds StepWatch::silent_for() const { return Seconds{std::chrono::duration<double>(Clock::now() - last_).count()}; }

// Inside a container ranks have other process numbers than outside, and often another user: there a shell of the
// container sends the signal.
void StepWatch::ask_for_stacks() const {
  std::vector<std::string> argv = {"docker", "exec", container_, "sh", "-c", "kill -USR2 \"$@\"", "sh"};
  for (const RankSteps& rank : ranks_) {
    if (rank.pid <= 1) continue;
    if (container_.empty()) {
      kill(rank.pid, SIGUSR2);
    } else {
      argv.push_back(std::to_string(rank.pid));
    }
  }
  if (container_.empty() || ranks_.empty()) return;
  const auto ignored = try_to([&] { return run({.argv = argv, .timeout = Seconds{5}}); });
}

StepWatch::Report StepWatch::report() {
  Report report{.others_hang = !ranks_.empty()};
  const double silent = silent_for().value;
  const auto stack_of = [&](const RankSteps& rank) { return folder_ / fmt::format("rank-{}.stack", rank.rank); };
  ask_for_stacks();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<std::pair<RankSteps, RankPlace>> places;
  for (const RankSteps& rank : ranks_) {
    places.emplace_back(rank,
                        read_stack(try_to([&] { return read_file(stack_of(rank), Bytes{1 << 16}); }).value_or("")));
    report.others_hang = report.others_hang && places.back().second.waits;
  }
  // The rank that does not wait, or has come least far, holds up the others.
  const auto hangs = std::min_element(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.waits, a.first.steps) < std::pair(b.second.waits, b.first.steps);
  });
  if (hangs == places.end()) {
    report.text = fmt::format("no rank of this node has made a step for {:.0f} s", silent);
    return report;
  }
  report.text =
      fmt::format("rank {} has made no step for {:.0f} s, after {}", hangs->first.rank, silent, hangs->first.steps);
  if (!hangs->second.place.empty()) {
    report.text += fmt::format("; it is at {}{}", printable(hangs->second.place, 160),
                               hangs->second.waits ? " and waits for other ranks" : "");
  }
  return report;
}

}  // namespace yoke::launch
