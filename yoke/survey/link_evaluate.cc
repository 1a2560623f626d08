#include "yoke/survey/link_evaluate.h"

#include <algorithm>

#include "yoke/bench/collective_ranks.h"
#include "yoke/check/rule.h"
#include "yoke/link/link_survey.h"

namespace yoke::survey {

void evaluate_link_test(link::LinkTestResult& result, const spec::Cluster& cluster,
                        const std::vector<link::NodePair>& pairs) {
  constexpr check::Needs kParts =
      check::kNeedsLinks | check::kNeedsAddresses | check::kNeedsRates | check::kNeedsCollective;
  const spec::Survey survey = link::survey_of(result, cluster, pairs);
  result.findings = check::evaluate(survey, kParts);
  result.withheld = check::withheld(survey, kParts);
}

std::vector<spec::Finding> evaluate_discovery(const link::DiscoverResult& result) {
  const check::Needs addresses = result.discovery.adopted ? check::kNeedsAddresses : 0;
  return check::evaluate(link::survey_of(result), check::kNeedsLinks | check::kNeedsCabling | addresses);
}

namespace {

bool names_slow_collective(const std::vector<spec::Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const spec::Finding& finding) { return finding.rule == "collective-slow"; });
}

}  // namespace

LinkSurveyOptions link_survey_of(const spec::Cluster& cluster, const std::vector<link::NodePair>& pairs) {
  LinkSurveyOptions options;
  options.run_collective = [cluster](rank::Transport transport, const bench::CollectiveOptions& collective,
                                     const std::vector<std::shared_ptr<fleet::Node>>& reached,
                                     bench::CollectiveSink* progress) {
    return bench::run_ranks({.transport = transport, .cluster = cluster, .reached = reached}, collective, progress);
  };
  options.seems_slow = [cluster, pairs](link::LinkTestResult result) {
    evaluate_link_test(result, cluster, pairs);
    return names_slow_collective(result.findings) || names_slow_collective(result.withheld);
  };
  return options;
}

}  // namespace yoke::survey
