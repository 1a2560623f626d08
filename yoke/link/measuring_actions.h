// What an agent can measure: facts, listen, move bytes, ping, run perftest.
#pragma once
#include "yoke/agent/action.h"

namespace yoke::link {

Document report_rail_facts(const Document& question, agent::AgentContext& context);
// These share one set of listeners: the first replaces it, the others use it.
Document listen_on_rails(const Document& question, agent::AgentContext& context);
Document move_on_rails(const Document& question, agent::AgentContext& context);
Document answer_pings_on_rail(const Document& question, agent::AgentContext& context);
Document ping_on_rail(const Document& question, agent::AgentContext& context);
Document run_perftest(const Document& question, agent::AgentContext& context);

}  // namespace yoke::link
