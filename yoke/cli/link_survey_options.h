// How commands measure the links of a cluster: who runs the collective, and when it is run once more.
#pragma once
#include "yoke/survey/links.h"

namespace yoke {

LinkSurveyOptions link_survey_of(const Cluster& cluster, const std::vector<NodePair>& pairs);

}  // namespace yoke
