// What a plan costs: per million tokens, per image, per training run. Prices are the user's: none is built in.
//
//   add_money(plan, request, {.kwh = 0.30, .hardware = 8000, .years = 3, .currency = "EUR"});
#pragma once
#include <string>

#include "yoke/plan/planner.h"

namespace yoke::plan {

struct Prices {
  double kwh = 0;         // of electricity; 0: not given, as with the others
  double hardware = 0;    // of all machines of the plan together
  double years = 0;       // over which the hardware is written off
  double cloud_hour = 0;  // of all machines together, with everything in it
  double busy = 1;        // share of the hours in which the machines work at what is planned
  std::string currency = "units";

  bool any() const { return kwh > 0 || hardware > 0 || cloud_hour > 0; }
};

// Error(kUsage) for prices that contradict each other or lack a part.
void check_prices(const Prices& prices);
// What an hour of work costs, at this power.
double hourly_cost(const Prices& prices, double watts);
// Adds estimates of cost to a plan that fits. The interval is that of the rate, widened by that of the power as far as
// electricity is a part of the cost; prices themselves are taken as exact.
void add_money(Plan& plan, const Request& request, const Prices& prices);

}  // namespace yoke::plan
