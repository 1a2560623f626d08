// The part of the table of rules that `yoke link` runs, on what it found out.
#pragma once
#include <vector>

#include "yoke/link/discover.h"
#include "yoke/link/link_result.h"
#include "yoke/link/pairs.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/finding.h"
#include "yoke/survey/links.h"

namespace yoke::survey {

// Fills its findings, and what was withheld. `pairs` are those that were measured, in the result's order.
void evaluate_link_test(link::LinkTestResult& result, const spec::Cluster& cluster,
                        const std::vector<link::NodePair>& pairs);

// About cables, and about addresses where they were adopted: what is only proposed is right.
std::vector<spec::Finding> evaluate_discovery(const link::DiscoverResult& result);

LinkSurveyOptions link_survey_of(const spec::Cluster& cluster, const std::vector<link::NodePair>& pairs);

}  // namespace yoke::survey
