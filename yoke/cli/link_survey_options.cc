#include "yoke/cli/link_survey_options.h"

#include <algorithm>

#include "yoke/bench/collective_ranks.h"
#include "yoke/cli/link_judge.h"

namespace yoke {
namespace {

bool names_slow_collective(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.rule == "collective-slow"; });
}

}  // namespace

LinkSurveyOptions link_survey_of(const Cluster& cluster, const std::vector<NodePair>& pairs) {
  LinkSurveyOptions options;
  options.run_collective = [cluster](Transport transport, const CollectiveOptions& collective,
                                     const std::vector<std::shared_ptr<Node>>& reached, CollectiveSink* progress) {
    return run_ranks({.transport = transport, .cluster = cluster, .reached = reached}, collective, progress);
  };
  options.seems_slow = [cluster, pairs](LinkTestResult result) {
    judge_link_test(result, cluster, pairs);
    return names_slow_collective(result.findings) || names_slow_collective(result.withheld);
  };
  return options;
}

}  // namespace yoke
