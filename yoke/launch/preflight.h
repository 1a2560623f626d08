// What keeps a launch from working, found before the start: the engine, ports, the model and the image on every node,
// and what would kill it there. Findings, evaluated from what the nodes answered.
#pragma once
#include <string>
#include <vector>

#include "yoke/fleet/fleet.h"
#include "yoke/launch/launch_plan.h"
#include "yoke/launch/node_look.h"
#include "yoke/launch/through.h"
#include "yoke/spec/finding.h"

namespace yoke::launch {

LookQuestion question_for(const LaunchPlan& plan, std::size_t node, Through through);
// Pure. `answers` are of the plan's nodes, in their order.
std::vector<spec::Finding> evaluate_launch(const LaunchPlan& plan, Through through, Bytes floor,
                                           const std::vector<NodeLookAnswer>& answers);
// Asks all nodes at once and evaluates.
std::vector<spec::Finding> preflight(const LaunchPlan& plan, Through through, Bytes floor, fleet::Fleet& fleet);

// Below how much available memory earlyoom sends SIGTERM, from its command line; a tenth unless it says otherwise.
Bytes earlyoom_floor(const std::string& command, Bytes memory);

}  // namespace yoke::launch
