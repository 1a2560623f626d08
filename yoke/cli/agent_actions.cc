// Everything that a node can be asked to do, in one table.
#include "yoke/cli/agent_actions.h"

#include <unistd.h>

#include <array>

#include "yoke/agent/serve.h"
#include "yoke/base/files.h"
#include "yoke/job/supervisor.h"
#include "yoke/link/discover_node.h"
#include "yoke/link/measuring_actions.h"
#include "yoke/link/setup_actions.h"
#include "yoke/probe/probe.h"
#include "yoke/survey/node_survey.h"

namespace yoke {
namespace {

Document probe_here(const Document&, AgentContext&) { return to_json(probe_machine(sources_here())); }

constexpr std::array kActions = {
    AgentAction{.name = "probe", .answer = probe_here},
    AgentAction{.name = "survey", .answer = answer_survey},
    // jobs
    AgentAction{.name = "supervise", .program = supervisor_command},
    // yoke link test
    AgentAction{.name = "facts", .answer = tell_half_facts},
    AgentAction{.name = "listen", .answer = listen_on_halves},
    AgentAction{.name = "move", .answer = move_on_halves},
    AgentAction{.name = "ping", .answer = ping_on_half},
    AgentAction{.name = "answer-pings", .answer = answer_pings_on_half},
    AgentAction{.name = "perftest", .answer = run_perftest},
    // yoke link discover: beacons need root, the facts do not
    AgentAction{.name = "discover", .answer = report_to_discovery},
    // yoke link setup and undo
    AgentAction{.name = "setup-facts", .answer = tell_setup_facts},
    AgentAction{.name = "look-at-step", .answer = look_at_step},
    AgentAction{.name = "do-step", .rights = AgentRights::kRoot, .answer = do_step},
    AgentAction{.name = "records", .answer = list_records},
    AgentAction{.name = "undo", .rights = AgentRights::kRoot, .answer = undo_steps},
};

}  // namespace

std::optional<int> run_agent_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{"agent"}) return std::nullopt;
  // Frames alone go to the head: what an action should print by mistake is a complaint.
  const UniqueFd out(dup(STDOUT_FILENO));
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return serve_actions(kActions, STDIN_FILENO, out.get());
}

}  // namespace yoke
