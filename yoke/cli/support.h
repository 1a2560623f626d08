// The node's part of `yoke support`: its capture, as the texts of its files by their names.
#pragma once
#include "yoke/agent/action.h"

namespace yoke::cli {

Document answer_capture(const Document& question, agent::AgentContext& context);

}  // namespace yoke::cli
