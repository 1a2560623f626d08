#include "yoke/cli/link_judge.h"

#include "yoke/check/rule.h"
#include "yoke/link/link_survey.h"

namespace yoke {

void judge_link_test(LinkTestResult& result, const Cluster& cluster, const std::vector<NodePair>& pairs) {
  constexpr Needs kParts = kNeedsLinks | kNeedsAddresses | kNeedsRates | kNeedsCollective;
  const Survey survey = survey_of(result, cluster, pairs);
  result.findings = judge(survey, kParts);
  result.withheld = withheld(survey, kParts);
}

std::vector<Finding> judge_discovery(const DiscoverResult& result) {
  const Needs addresses = result.discovery.adopted ? kNeedsAddresses : 0;
  return judge(survey_of(result), kNeedsLinks | kNeedsCabling | addresses);
}

}  // namespace yoke
