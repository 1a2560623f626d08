// What `yoke link test` and `yoke link discover` found out, as the survey that rules evaluate. Pure.
#pragma once
#include <vector>

#include "yoke/link/discover.h"
#include "yoke/link/link_result.h"
#include "yoke/link/pairs.h"
#include "yoke/spec/survey.h"

namespace yoke::link {

spec::Measurement measurement_of(const LinkTestResult& result);

// Of the nodes and rails that were measured, and of no others: `pairs` are those of the result, in its order. Of the
// machines it knows only the interfaces of these rails, and the routes between them.
spec::Survey survey_of(const LinkTestResult& result, const spec::Cluster& cluster, const std::vector<NodePair>& pairs);

// The machines as far as they told, and the cabling. No cluster file: what is there is held against what it could be.
spec::Survey survey_of(const DiscoverResult& result);

}  // namespace yoke::link
