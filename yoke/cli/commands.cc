#include "yoke/cli/commands.h"

#include <algorithm>
#include <cstdlib>

#include "yoke/bench/collective_ranks.h"
#include "yoke/bench/recovery.h"
#include "yoke/cli/agent_actions.h"
#include "yoke/job/supervisor.h"
#include "yoke/lab/lab.h"
#include "yoke/serve/engine_task.h"

namespace yoke {
namespace {

std::optional<int> run_rank_word(const std::vector<std::string>& arguments) {
  if (!std::getenv(kRankTaskVariable)) return std::nullopt;
  const RankKind kinds[] = {engine_rank_kind(), collective_rank_kind(), recovery_rank_kind()};
  return run_rank_part(kinds, {arguments.begin() + 1, arguments.end()});
}

CommandRow hidden(std::string word, std::string summary,
                  std::function<std::optional<int>(const std::vector<std::string>&)> part) {
  return {.name = std::move(word),
          .summary = std::move(summary),
          .visibility = Visibility::kHidden,
          .part = std::move(part)};
}

}  // namespace

std::vector<CommandRow> command_table() {
  return {
      bench_command(),
      chat_command(),
      check_command(),
      cluster_command(),
      completion_command(),
      gameday_command(),
      help_command(),
      job_command(),
      lab_command(),
      link_command(),
      man_command(),
      model_command(),
      plan_command(),
      probe_command(),
      run_command(),
      tokenize_command(),
      verify_command(),
      version_command(),
      hidden("agent", "answers the questions of other machines' commands", run_agent_part),
      hidden("lab-keeper", "keeps a lab of 'yoke lab'", run_lab_part),
      hidden("lab-node", "is the first process of a lab's node", run_lab_part),
      hidden("lab-plain-node", "the same in a lab without namespaces", run_lab_part),
      hidden("node", "starts the ranks of a job on a node", run_job_part),
      hidden(kRankWord, "is one rank of an engine or a measurement", run_rank_word),
  };
}

std::vector<CommandRow> public_commands() {
  std::vector<CommandRow> rows = command_table();
  std::erase_if(rows, [](const CommandRow& row) { return row.visibility == Visibility::kHidden; });
  return rows;
}

}  // namespace yoke
