// What an agent can change: look at a step, do it, undo what the journal tells.
#pragma once
#include "yoke/link/agent.h"

namespace yoke {

AgentActions setup_actions();

}  // namespace yoke
