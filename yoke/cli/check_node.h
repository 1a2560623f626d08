// One node's part of `yoke check`, done on that node: its facts, and what passes from it to the others. The head starts
// it as a hidden part of the program over ssh and gives the questions on standard input.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/spec/survey.h"

namespace yoke {

// What is to be asked stands in the node itself: paths and far addresses without results, names without addresses, and
// forward_policy as "?" where it is wanted. All trials are made at once; each ends within some two seconds.
SurveyedNode look_at_this_node(const SurveyedNode& questions);

// The hidden part's answer with the clock of the node as it was sent.
struct TimedNode {
  SurveyedNode node;
  double time = 0;  // seconds since 1970
};
Document to_json(const TimedNode& answer);
TimedNode timed_node_from_json(const Document& document);
double wall_clock_now();

// `yoke check-node`: the exit status, or nothing for other arguments.
std::optional<int> run_check_part(const std::vector<std::string>& arguments);

}  // namespace yoke
