// What an agent can change: look at a step, do it, undo what the journal tells. The messages of both ends are here.
#pragma once
#include <string>
#include <vector>

#include "yoke/agent/action.h"

namespace yoke::link {

// Whether a step is so already, and what would be run.
struct StepLook {
  bool satisfied = false;
  std::vector<std::string> commands;
};
Document to_json(const StepLook& look);
void from_json(const Document& document, StepLook& look);

// What a node's journal holds.
struct UndoRecord {
  std::string description;
  std::string time;
  bool done = false;  // false: its step was cut short
};
Document to_json(const UndoRecord& record);
void from_json(const Document& document, UndoRecord& record);

struct UndoRequest {
  std::size_t mark = 0;  // so many records stay
  bool force = false;    // what somebody else changed since is taken back, too
};
Document to_json(const UndoRequest& request);
void from_json(const Document& document, UndoRequest& request);

Document report_setup_facts(const Document& question, agent::AgentContext& context);
Document inspect_step(const Document& question, agent::AgentContext& context);
Document do_step(const Document& question, agent::AgentContext& context);
Document list_records(const Document& question, agent::AgentContext& context);  // the newest first
Document undo_steps(const Document& question, agent::AgentContext& context);

}  // namespace yoke::link
