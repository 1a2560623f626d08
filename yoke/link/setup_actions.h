// What an agent can change: look at a step, do it, undo what the journal tells. The messages of both ends are here.
#pragma once
#include <string>
#include <vector>

#include "yoke/agent/action.h"

namespace yoke {

// Whether a step is so already, and what would be run.
struct StepLook {
  bool satisfied = false;
  std::vector<std::string> commands;
};
Document to_json(const StepLook& look);
StepLook step_look_from_json(const Document& document);

// What a node's journal holds.
struct UndoRecord {
  std::string says;
  std::string time;
  bool done = false;  // false: its step was cut short
};
Document to_json(const std::vector<UndoRecord>& records);
std::vector<UndoRecord> undo_records_from_json(const Document& document);

struct UndoRequest {
  std::size_t mark = 0;  // so many records stay
  bool force = false;    // what somebody else changed since is taken back, too
};
Document to_json(const UndoRequest& request);
UndoRequest undo_request_from_json(const Document& document);

Document tell_setup_facts(const Document& question, AgentContext& context);
Document look_at_step(const Document& question, AgentContext& context);
Document do_step(const Document& question, AgentContext& context);
Document list_records(const Document& question, AgentContext& context);  // the newest first
Document undo_steps(const Document& question, AgentContext& context);

}  // namespace yoke
