// What an agent can measure: facts, listen, move bytes, ping, run perftest.
#pragma once
#include "yoke/agent/action.h"

namespace yoke {

Document tell_half_facts(const Document& question, AgentContext& context);
// These share one set of listeners: the first replaces it, the others use it.
Document listen_on_halves(const Document& question, AgentContext& context);
Document move_on_halves(const Document& question, AgentContext& context);
Document answer_pings_on_half(const Document& question, AgentContext& context);
Document ping_on_half(const Document& question, AgentContext& context);
Document run_perftest(const Document& question, AgentContext& context);

}  // namespace yoke
