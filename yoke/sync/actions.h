// What an agent does for a copy, in the order in which it is asked.
#pragma once
#include "yoke/agent/action.h"

namespace yoke::sync {

Document list_folder(const Document& question, agent::AgentContext& context);     // at the source
Document find_files(const Document& question, agent::AgentContext& context);      // at a target: what is there already
Document hash_folder(const Document& question, agent::AgentContext& context);     // at both
Document prepare_folder(const Document& question, agent::AgentContext& context);  // at a target: listens
Document receive_files(const Document& question, agent::AgentContext& context);
Document send_files(const Document& question, agent::AgentContext& context);
Document finish_folder(const Document& question, agent::AgentContext& context);

}  // namespace yoke::sync
