// The pins of every node at the moment of a start, from what its agent says of it (yoke/spec/fabric_pins.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/agent/action.h"
#include "yoke/fleet/fleet.h"
#include "yoke/job/job.h"
#include "yoke/spec/fabric_pins.h"
#include "yoke/spec/survey.h"

namespace yoke::launch {

struct PinnedNode {
  std::string node;
  std::optional<Error> failure;  // the node did not say what it is: it has no pins
  spec::PinFacts facts;
  spec::NodePins pins;
};

// From a machine that is known already.
PinnedNode pin_node(const spec::Cluster& cluster, std::size_t index, const spec::Machine& machine);
// Asks all nodes of the fleet at once; an answer takes milliseconds, as NVML is not asked.
std::vector<PinnedNode> pin_nodes(fleet::Fleet& fleet, const spec::Cluster& cluster);

// What a rank of the node gets.
std::vector<job::Variable> variables_of(const spec::NodePins& pins);
// One line for each setting of a user that differs from what yoke would set.
std::vector<std::string> overrides_text(const std::vector<PinnedNode>& nodes);
// Lines for a shell's eval, with the reasons as comments.
std::string shell_text(const PinnedNode& node);
Document to_json(const PinnedNode& node);

// The agent's action: this machine as JSON, as quick_sources_here() knows it.
Document answer_pin_facts(const Document& question, agent::AgentContext& context);

}  // namespace yoke::launch
