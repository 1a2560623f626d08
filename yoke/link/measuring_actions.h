// What an agent can measure: facts, listen, move bytes, ping, run perftest.
#pragma once
#include "yoke/link/agent.h"

namespace yoke {

// The actions share one set of listeners: "listen" replaces it, "move" and "answer-pings" use it.
AgentActions measuring_actions();

}  // namespace yoke
