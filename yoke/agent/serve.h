// yoke's hand on a node: `yoke agent`, started there over ssh (yoke/fleet/node.h), or as a child process on the machine
// of the command itself. It answers questions of the head (agent_frame.h) from one table of actions, several at once,
// and ends with its input: what is being answered then comes to its end first, programs of channels are ended.
#pragma once
#include <span>

#include "yoke/agent/action.h"

namespace yoke::agent {

// Owns the descriptors' use until it returns: the exit status.
int serve_actions(std::span<const AgentAction> table, int in, int out);

}  // namespace yoke::agent
