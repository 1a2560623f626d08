// A request as JSON and back, so that every decision of a plan can be replayed: `yoke plan --replay plan.json`.
#pragma once
#include "yoke/plan/planner.h"

namespace yoke::plan {

Document to_json(const Request& request);
// Error(kInvalid) names the key that is missing, unknown or absurd.
void from_json(const Document& document, Request& request);

}  // namespace yoke::plan
