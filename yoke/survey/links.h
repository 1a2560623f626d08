// What the rails between the nodes carry, and what a real all-reduce over them does. Measures, and evaluates nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/result.h"
#include "yoke/bench/measure_collective.h"
#include "yoke/fleet/fleet.h"
#include "yoke/link/measure_pair.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/measurement.h"

namespace yoke::survey {

// Runs a collective with one rank on each node of the cluster, over nodes that are reached already.
using RunCollective = std::function<bench::CollectiveRun(
    rank::Transport transport, const bench::CollectiveOptions& options,
    const std::vector<std::shared_ptr<fleet::Node>>& reached, bench::CollectiveSink* progress)>;

struct LinkSurveyOptions {
  link::MeasureOptions measure = {};
  std::string no_collective = {};  // why none is run; empty: one is
  RunCollective run_collective = {};
  // Whether the all-reduce seems slow: then it is run once more, and both are kept.
  std::function<bool(const link::LinkTestResult&)> seems_slow = {};
};

// The nodes of all pairs are reached, and of all nodes where a collective is run. The findings are left empty.
link::LinkTestResult survey_links(fleet::Fleet& fleet, const spec::Cluster& cluster,
                                  const std::vector<link::NodePair>& pairs, const LinkSurveyOptions& options);

// The places of the nodes that take part.
std::vector<int> nodes_in(const std::vector<link::NodePair>& pairs);

// Why the rails of a cluster cannot be measured, or nothing.
std::optional<Error> why_not_measured(const spec::Cluster& cluster);

}  // namespace yoke::survey
