#include "yoke/plan/money.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "yoke/base/error.h"

namespace yoke::plan {
namespace {

constexpr double kHoursOfYear = 8766;  // 365.25 days

const Estimate* find_estimate(const Plan& plan, std::string_view prefix) {
  const Estimate* found = nullptr;  // the last: of drawing, the one of all GPUs
  for (const Estimate& estimate : plan.estimates) {
    if (estimate.name.starts_with(prefix)) found = &estimate;
  }
  return found;
}

// Half of the width of an interval, as a logarithm.
double spread_of(const Estimate* estimate) {
  if (!estimate || estimate->low <= 0 || estimate->high <= 0) return 0;
  return std::log(estimate->high / estimate->low) / 2;
}

// Three digits, without an exponent.
std::string price_text(double price) { return fmt::format("{:.3g}", price); }

std::string assumptions(const Prices& prices, double watts) {
  if (prices.cloud_hour > 0) {
    return fmt::format("{} {} per hour for all machines, busy {:.0f}% of the time", price_text(prices.cloud_hour),
                       prices.currency, 100 * prices.busy);
  }
  std::string text;
  if (prices.hardware > 0) {
    text = fmt::format("hardware for {:.0f} {} over {:.3g} years, busy {:.0f}% of the time", prices.hardware,
                       prices.currency, prices.years, 100 * prices.busy);
  }
  if (prices.kwh > 0) {
    text += fmt::format("{}{} {} per kWh at {:.0f} W", text.empty() ? "" : "; ", price_text(prices.kwh),
                        prices.currency, watts);
  }
  return text + "; without interest, staff, room, cooling and idle power";
}

class MoneyEstimates {
 public:
  MoneyEstimates(Plan& plan, const Prices& prices) : plan_(plan), prices_(prices) {
    const Estimate* power = find_estimate(plan, "power");
    watts_ = power ? power->value : 0;
    hourly_ = hourly_cost(prices, watts_);
    const double energy = prices.cloud_hour > 0 ? 0 : prices.kwh * watts_ / 1000;
    power_spread_ = hourly_ > 0 ? energy / hourly_ * spread_of(power) : 0;
  }

  // The cost of so many seconds of work, whose own interval is that of `like`.
  void add(const std::string& name, double seconds, const Estimate* like) {
    const double value = hourly_ * seconds / 3600;
    const double factor = std::exp(std::hypot(spread_of(like), power_spread_));
    plan_.estimates.push_back({.name = name,
                               .value = value,
                               .low = value / factor,
                               .high = value * factor,
                               .unit = prices_.currency,
                               .provenance = assumptions(prices_, watts_)});
  }

 private:
  Plan& plan_;
  const Prices& prices_;
  double watts_ = 0, hourly_ = 0, power_spread_ = 0;
};

[[noreturn]] void refuse(const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::kUsage, what, hint);
}

}  // namespace

void check_prices(const Prices& prices) {
  const bool own = prices.kwh > 0 || prices.hardware > 0;
  if (prices.cloud_hour > 0 && own) {
    refuse("--cloud-price holds hardware and power already", "leave out --price-kwh and --hardware-price");
  }
  if (prices.hardware > 0 && prices.years <= 0) {
    refuse("--hardware-price needs the years over which it is written off", "--years 3");
  }
  if (prices.years > 0 && prices.hardware <= 0) refuse("--years needs --hardware-price", "--hardware-price 8000");
}

double hourly_cost(const Prices& prices, double watts) {
  if (prices.cloud_hour > 0) return prices.cloud_hour / prices.busy;
  const double hardware = prices.hardware > 0 ? prices.hardware / (prices.years * kHoursOfYear * prices.busy) : 0;
  return hardware + prices.kwh * watts / 1000;
}

void add_money(Plan& plan, const Request& request, const Prices& prices) {
  check_prices(prices);
  if (!prices.any() || !plan.fits || plan.layouts.empty() || plan.layouts.front().score <= 0) return;
  const double rate = plan.layouts.front().score;
  MoneyEstimates money(plan, prices);
  const auto copy_of = [&](std::string_view prefix) {
    const Estimate* found = find_estimate(plan, prefix);
    return found ? *found : Estimate{};
  };
  if (plan.goal == Goal::kDraw) {
    const Estimate like = copy_of("seconds per image");
    // Of a layout with a GPU for each image all of them draw at once.
    money.add("cost per image", 1 / (rate * plan.layouts.front().layout.replicas), &like);
  } else if (plan.goal == Goal::kServe) {
    const Estimate like = copy_of("decode");
    money.add(fmt::format("cost per million tokens of answers, prompts of {:.0f} read", request.prompt), 1e6 / rate,
              &like);
  } else {
    const Estimate like = copy_of("training");
    money.add("cost per million tokens", 1e6 / rate, &like);
    if (request.tokens > 0) money.add("cost of the training run", request.tokens / rate, &like);
  }
}

}  // namespace yoke::plan
