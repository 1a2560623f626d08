#include "yoke/watch/slurm_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "yoke/base/text.h"

namespace yoke::watch {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "slurmstepd: [12.extern]" to 12 and "extern".
std::optional<std::pair<std::string, std::string>> job_and_step(const std::string& title) {
  const std::size_t open = title.find('[');
  const std::size_t close = title.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  const std::string inside = title.substr(open + 1, close - open - 1);
  const std::size_t dot = inside.find('.');
  std::string job = inside.substr(0, dot);
  // An array's task is "12_3", a part of a heterogeneous job "12+1".
  const std::string number = job.substr(0, job.find_first_of("_+"));
  if (!is_number(number)) return std::nullopt;
  return std::pair(std::move(job), dot == std::string::npos ? "" : printable(inside.substr(dot + 1), 40));
}

}  // namespace

std::vector<JobSample> SlurmSteps::read(const FileTree& tree, const std::string& now) {
  if (++looks_ % kLooksUntilForgotten == 0) processes_.clear();
  std::map<std::string, bool> processes;
  std::map<std::string, std::set<std::string>> steps;  // by job
  for (const std::string& process : tree.list("/proc")) {
    if (!is_number(process)) continue;
    const auto known = processes_.find(process);
    const bool is_step =
        known != processes_.end() ? known->second : tree.read_trimmed("/proc/" + process + "/comm") == "slurmstepd";
    processes[process] = is_step;
    if (!is_step) continue;
    const auto found = job_and_step(tree.read("/proc/" + process + "/cmdline").value_or(""));
    if (found) steps[found->first].insert(found->second);
  }
  processes_ = std::move(processes);
  std::erase_if(since_, [&](const auto& entry) { return !steps.contains(entry.first); });
  std::vector<JobSample> jobs;
  for (const auto& [job, names] : steps) {
    jobs.push_back({.name = "slurm " + job,
                    .since = since_.try_emplace(job, now).first->second,
                    .ranks = 0,
                    .command = fmt::format("steps: {}", fmt::join(names, ", "))});
  }
  return jobs;
}

}  // namespace yoke::watch
