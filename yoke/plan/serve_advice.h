// What to change so that a model fits, or fits better, and what a user should know before trusting a plan.
#pragma once
#include "yoke/plan/serve_score.h"

namespace yoke::plan {

void suggest_changes(Plan& plan, const Request& request, const Layout& layout, const Constants& constants);
void warn(Plan& plan, const Request& request, const Scored& best, const Constants& constants);

}  // namespace yoke::plan
