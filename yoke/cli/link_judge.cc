#include "yoke/cli/link_judge.h"

#include "yoke/check/rule.h"
#include "yoke/link/link_survey.h"

namespace yoke {

std::vector<Finding> judge_link_test(const LinkTestResult& result, const Cluster& cluster,
                                     const std::vector<NodePair>& pairs) {
  return judge(survey_of(result, cluster, pairs), kNeedsLinks | kNeedsAddresses | kNeedsRates | kNeedsCollective);
}

std::vector<Finding> judge_discovery(const DiscoverResult& result) {
  const Needs addresses = result.discovery.adopted ? kNeedsAddresses : 0;
  return judge(survey_of(result), kNeedsLinks | kNeedsCabling | addresses);
}

}  // namespace yoke
