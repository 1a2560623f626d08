#include "yoke/cli/commands.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "yoke/agent/serve.h"
#include "yoke/base/files.h"
#include "yoke/bench/calibrate_ranks.h"
#include "yoke/bench/collective_ranks.h"
#include "yoke/bench/model_ranks.h"
#include "yoke/bench/recovery.h"
#include "yoke/cli/complete_words.h"
#include "yoke/job/supervisor.h"
#include "yoke/lab/lab.h"
#include "yoke/launch/node_look.h"
#include "yoke/launch/node_pins.h"
#include "yoke/launch/prep_look.h"
#include "yoke/link/discover_node.h"
#include "yoke/link/measuring_actions.h"
#include "yoke/link/setup_actions.h"
#include "yoke/probe/probe.h"
#include "yoke/serve/engine_task.h"
#include "yoke/survey/load_watch.h"
#include "yoke/survey/node_survey.h"
#include "yoke/sync/actions.h"
#include "yoke/watch/node_streams.h"
#include "yoke/watch/sampler.h"

namespace yoke::cli {

namespace {

// Everything that a node can be asked to do, in one table.

Document probe_here(const Document&, agent::AgentContext&) {
  return spec::to_json(probe::probe_machine(probe::sources_here()));
}

constexpr std::array kActions = {
    agent::AgentAction{.name = "probe", .answer = probe_here},
    agent::AgentAction{.name = "survey", .answer = survey::answer_survey},
    agent::AgentAction{.name = "processor-times", .answer = survey::answer_processor_times},
    agent::AgentAction{.name = "capture", .answer = survey::answer_capture},  // yoke support
    // jobs and launched engines
    agent::AgentAction{.name = "pin-facts", .answer = launch::answer_pin_facts},
    agent::AgentAction{.name = "launch-look", .answer = launch::answer_launch_look},
    agent::AgentAction{.name = "prep-look", .answer = launch::answer_prep_look},
    agent::AgentAction{.name = "supervise", .program = job::supervisor_command},
    // yoke model sync
    agent::AgentAction{.name = "sync-list", .answer = sync::list_folder},
    agent::AgentAction{.name = "sync-find", .answer = sync::find_files},
    agent::AgentAction{.name = "sync-hash", .answer = sync::hash_folder},
    agent::AgentAction{.name = "sync-prepare", .answer = sync::prepare_folder},
    agent::AgentAction{.name = "sync-receive", .answer = sync::receive_files},
    agent::AgentAction{.name = "sync-send", .answer = sync::send_files},
    agent::AgentAction{.name = "sync-finish", .answer = sync::finish_folder},
    // yoke watch
    agent::AgentAction{.name = "watch-facts", .answer = watch::answer_watch_facts},
    agent::AgentAction{.name = "watch", .program = watch::sampler_command},
    // yoke link test
    agent::AgentAction{.name = "facts", .answer = link::report_rail_facts},
    agent::AgentAction{.name = "listen", .answer = link::listen_on_rails},
    agent::AgentAction{.name = "move", .answer = link::move_on_rails},
    agent::AgentAction{.name = "ping", .answer = link::ping_on_rail},
    agent::AgentAction{.name = "answer-pings", .answer = link::answer_pings_on_rail},
    agent::AgentAction{.name = "perftest", .answer = link::run_perftest},
    // yoke link discover: beacons need root, the facts do not
    agent::AgentAction{.name = "discover", .answer = link::report_to_discovery},
    // yoke link setup and undo
    agent::AgentAction{.name = "setup-facts", .answer = link::report_setup_facts},
    agent::AgentAction{.name = "look-at-step", .answer = link::inspect_step},
    agent::AgentAction{.name = "do-step", .rights = agent::AgentRights::kRoot, .answer = link::do_step},
    agent::AgentAction{.name = "records", .answer = link::list_records},
    agent::AgentAction{.name = "undo", .rights = agent::AgentRights::kRoot, .answer = link::undo_steps},
};

std::optional<int> run_agent_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{"agent"}) return std::nullopt;
  // Frames alone go to the head: what an action should print by mistake is a complaint.
  const UniqueFd out(dup(STDOUT_FILENO));
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return agent::serve_actions(kActions, STDIN_FILENO, out.get());
}

std::optional<int> run_rank_word(const std::vector<std::string>& arguments) {
  if (!std::getenv(rank::kRankTaskVariable)) return std::nullopt;
  const rank::RankKind kinds[] = {serve::engine_rank_kind(), bench::collective_rank_kind(), bench::recovery_rank_kind(),
                                  bench::calibrate_rank_kind(), bench::model_rank_kind()};
  return rank::run_rank_part(kinds, {arguments.begin() + 1, arguments.end()});
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
      // In the order of the story, then what serves it.
      walk_up_command(),
      lab_command(),
      link_command(),
      check_command(),
      explain_command(),
      run_command(),
      chat_command(),
      serve_command(),
      batch_command(),
      bench_command(),
      plan_command(),
      prep_command(),
      launch_command(),
      watch_command(),
      why_command(),
      gameday_command(),
      cluster_command(),
      probe_command(),
      support_command(),
      job_command(),
      model_command(),
      tokenize_command(),
      verify_command(),
      completion_command(),
      help_command(),
      man_command(),
      version_command(),
      hidden("complete-words", "prints what may follow in a command line that is being typed", run_complete_part),
      hidden("agent", "answers the questions of other machines' commands", run_agent_part),
      hidden("lab-holder", "keeps a lab of 'yoke lab'", lab::run_lab_part),
      hidden("lab-node", "is the first process of a lab's node", lab::run_lab_part),
      hidden("lab-plain-node", "the same in a lab without namespaces", lab::run_lab_part),
      hidden(watch::kSamplerWord, "samples this machine for 'yoke watch'", watch::run_sampler_part),
      hidden("node", "starts the ranks of a job on a node", job::run_job_part),
      hidden(rank::kRankWord, "is one rank of an engine or a measurement", run_rank_word),
  };
}

std::vector<CommandRow> public_commands() {
  std::vector<CommandRow> rows = command_table();
  std::erase_if(rows, [](const CommandRow& row) { return row.visibility == Visibility::kHidden; });
  return rows;
}

}  // namespace yoke::cli
