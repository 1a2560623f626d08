// Gathers what is known of a cluster at one moment: from every node at once, from this machine, or from captures.
// Evaluates nothing.
//
//   Fleet fleet(cluster.nodes, survey_login(10_s));
//   Survey survey = survey_nodes(fleet, cluster, 10_s);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/fleet/fleet.h"
#include "yoke/spec/survey.h"

namespace yoke::survey {

// How the nodes of a survey are reached: by a fresh login, as what it needs may have changed since the last one.
fleet::NodeOptions survey_login(Seconds timeout);

// Facts and trials. A node that cannot be looked at has a failure instead of a machine: that is an answer, not an
// Error. The timeout is for a node's answer.
enum class Canary { kNotMeasured, kMeasured };  // see canary.h
spec::Survey survey_nodes(fleet::Fleet& fleet, const spec::Cluster& cluster, Seconds timeout,
                          Canary canary = Canary::kNotMeasured);
spec::Survey survey_here(Canary canary = Canary::kNotMeasured);
// Folders as `yoke probe --capture` writes them. With a cluster, each takes the place of the node with its host name.
spec::Survey survey_captures(const std::vector<std::string>& folders, const std::optional<spec::Cluster>& cluster);

// What is asked of each node: which peers its rails should reach, in a ring which far addresses, and which
// names it should resolve.
std::vector<spec::SurveyedNode> questions_for(const spec::Cluster& cluster);

}  // namespace yoke::survey
