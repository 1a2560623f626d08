// Plans for people.
#pragma once
#include <string>
#include <vector>

#include "yoke/plan/explain.h"
#include "yoke/plan/planner.h"
#include "yoke/plan/validate.h"

namespace yoke::plan {

std::string plan_text(const Plan& plan, const Request& request);
std::string scale_text(const std::vector<ScalePoint>& points, const Request& request);
std::string validation_text(const Validation& validation, const std::string& file);
std::string claim_text(const ClaimExplained& explained);
std::string hardware_text(const spec::HardwareFacts& facts);

// Three significant digits, with a comma in thousands: "1,480", "0.0523".
std::string short_number(double value);

}  // namespace yoke::plan
