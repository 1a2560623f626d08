// Plans for people.
#pragma once
#include <string>
#include <vector>

#include "yoke/plan/explain.h"
#include "yoke/plan/planner.h"
#include "yoke/plan/validate.h"

namespace yoke::cli {

std::string plan_text(const plan::Plan& plan, const plan::Request& request);
std::string scale_text(const std::vector<plan::ScalePoint>& points, const plan::Request& request);
std::string validation_text(const plan::Validation& validation, const std::string& file);
std::string claim_text(const plan::ClaimExplained& explained);
std::string hardware_text(const spec::HardwareFacts& facts);

// Three significant digits, with a comma in thousands: "1,480", "0.0523".
std::string short_number(double value);

}  // namespace yoke::cli
