// How well a layout serves what was asked for, and why one is ahead of another.
#pragma once
#include <string>

#include "yoke/plan/planner.h"

namespace yoke::plan {

struct Scored {
  PlannedLayout planned;
  StepTime step;
  double prompt = 0;  // seconds to read one
};

Scored score(const Request& request, const Layout& layout, const Constants& constants);
std::string winner_because(const Scored& best, const Request& request);
std::string behind_because(const Scored& best, const Scored& other);  // the term that differs most
std::string milliseconds(double seconds);

}  // namespace yoke::plan
