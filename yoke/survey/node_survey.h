// One node's part of a survey, done on that node by its agent: its facts, and what passes from it to the others.
#pragma once
#include "yoke/agent/action.h"
#include "yoke/spec/survey.h"

namespace yoke::survey {

// What is to be asked stands in the node itself: paths and far addresses without results, names without addresses, and
// forward_policy as "?" where it is wanted. All trials are made at once; each ends within some two seconds.
spec::SurveyedNode survey_this_node(const spec::SurveyedNode& questions);

// The agent's action: the same as JSON.
Document answer_survey(const Document& question, agent::AgentContext& context);

// A capture as `yoke probe --capture` writes it: the text of each file by its name; and the agent's action that gives
// it.
Document capture_files();
Document answer_capture(const Document& question, agent::AgentContext& context);

}  // namespace yoke::survey
