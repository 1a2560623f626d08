// The part of the table of rules that `yoke link` runs, on what it found out.
#pragma once
#include <vector>

#include "yoke/link/discover.h"
#include "yoke/link/link_result.h"
#include "yoke/link/pairs.h"
#include "yoke/spec/cluster.h"
#include "yoke/spec/finding.h"

namespace yoke {

// Fills its findings, and what was withheld. `pairs` are those that were measured, in the result's order.
void judge_link_test(LinkTestResult& result, const Cluster& cluster, const std::vector<NodePair>& pairs);

// About cables, and about addresses where they were adopted: what is only proposed is right.
std::vector<Finding> judge_discovery(const DiscoverResult& result);

}  // namespace yoke
