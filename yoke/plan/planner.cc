#include "yoke/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/plan/validate.h"

namespace yoke::plan {
namespace {

constexpr int kRowsEnough = 3;

// Which published rows stand behind the constants that were read since they were last forgotten.
std::string provenance_of(const Constants& constants) {
  int used = 0;
  int measured = 0;
  std::vector<std::string> weak;
  int least = 0;
  for (const ConstantRow& row : constant_table()) {
    if (!constants.used().test(static_cast<std::size_t>(row.id))) continue;
    if (constants.measured().test(static_cast<std::size_t>(row.id))) {
      ++measured;
      continue;
    }
    ++used;
    if (row.rows < kRowsEnough) {
      weak.emplace_back(row.name);
    } else {
      least = least == 0 ? row.rows : std::min(least, row.rows);
    }
  }
  const auto constants_text = [](int count) { return fmt::format("{} constant{}", count, count == 1 ? "" : "s"); };
  if (used == 0 && measured == 0) return "derived from the figures above";
  const std::string here = measured == 0 ? "" : fmt::format("formula with {} measured here", constants_text(measured));
  if (used == 0) return here;
  std::string text = measured == 0 ? fmt::format("formula with {} from published measurements", constants_text(used))
                                   : fmt::format("{} and {} from published measurements", here, used);
  if (weak.empty()) return text + fmt::format(" ({} rows or more each)", least);
  return text + fmt::format("; fewer than {} rows: {}", kRowsEnough, fmt::join(weak, ", "));
}

}  // namespace

std::string layout_name(const Layout& layout) {
  std::vector<std::string> parts;
  if (layout.tensor > 1) parts.push_back(fmt::format("TP {}", layout.tensor));
  if (layout.pipeline > 1) parts.push_back(fmt::format("PP {}", layout.pipeline));
  if (layout.replicas > 1) parts.push_back(fmt::format("DP {}", layout.replicas));
  if (layout.experts > 1) parts.push_back(fmt::format("EP {}", layout.experts));
  return parts.empty() ? "one GPU" : fmt::format("{}", fmt::join(parts, " x "));
}

double doubt_of(const Request& request) {
  double doubt = request.model.guesses.empty() ? 1 : 1.2;
  const HardwareClass kind = request.machines.kind;
  const bool is_measured = kind == HardwareClass::kCpu && request.machines.measured.has_value();
  if (kind == HardwareClass::kOtherGpu || (kind == HardwareClass::kCpu && !is_measured)) doubt *= 1.3;
  if (request.goal == Goal::kServe && request.draft > 0) doubt *= 1.3;
  if (request.goal == Goal::kServe && request.engine == Engine::kYoke && !is_measured) doubt *= 1.3;
  if (request.goal == Goal::kTrain && request.model.experts > 0) doubt *= 1.6;
  return doubt;
}

Estimate estimate_of(std::string name, double value, std::string unit, const std::string& class_name, double doubt,
                     const Constants& constants) {
  const double factor = interval_factor(class_name) * doubt;
  Estimate estimate{.name = std::move(name),
                    .value = value,
                    .low = value / factor,
                    .high = value * factor,
                    .unit = std::move(unit),
                    .provenance = provenance_of(constants)};
  constants.forget_used();
  return estimate;
}

Plan make_plan(const Request& request, const Constants& shipped) {
  Constants constants = shipped;
  if (request.machines.measured) set_measured(constants, *request.machines.measured);
  constants.forget_used();
  const int asked = std::max(request.tensor, 1) * std::max(request.pipeline, 1) * std::max(request.replicas, 1);
  if (asked > request.machines.gpus()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} ranks were asked for, and {} has {} GPU{}", asked, request.machines.text,
                            request.machines.gpus(), request.machines.gpus() == 1 ? "" : "s"),
                "tensor x pipeline x replicas is at most the number of GPUs");
  }
  Plan plan = request.goal == Goal::kDraw    ? plan_draw(request, constants)
              : request.goal == Goal::kTrain ? plan_train(request, constants)
                                             : plan_serve(request, constants);
  plan.goal = request.goal;
  plan.model = request.goal == Goal::kDraw && request.image ? request.image->name : request.model.name;
  plan.format = std::string(request.format.name);
  plan.machines = request.machines.text;
  plan.guesses = request.goal == Goal::kDraw ? std::vector<std::string>{} : request.model.guesses;
  plan.cabling = plan_cabling(request.machines);
  for (const std::string& note : request.machines.notes) plan.warnings.push_back(note);
  return plan;
}

std::vector<ScalePoint> scale_plan(const Request& request, int nodes_max, const Constants& constants) {
  std::vector<ScalePoint> points;
  double per_node = 0;
  for (int nodes = 1; nodes <= nodes_max; nodes *= 2) {
    Request scaled = request;
    scaled.machines.nodes = nodes;
    scaled.tensor = scaled.pipeline = scaled.replicas = 0;
    // Each node brings its own requests and its own part of the batch.
    scaled.concurrency = request.concurrency * nodes;
    scaled.global_batch = request.global_batch * nodes;
    if (scaled.machines.kind == HardwareClass::kGb10) {
      scaled.machines.topology = nodes <= 2                        ? spec::Topology::kDirect
                                 : nodes == request.machines.nodes ? request.machines.topology
                                 : nodes <= 4                      ? spec::Topology::kRing
                                                                   : spec::Topology::kSwitch;
    }
    const Plan plan = make_plan(scaled, constants);
    ScalePoint point{.nodes = nodes, .rate = 0, .efficiency = 0, .layout = "does not fit"};
    if (plan.fits) {
      point.rate = plan.layouts.front().score;
      point.layout = plan.layouts.front().name;
      if (per_node == 0) per_node = point.rate / nodes;
      point.efficiency = point.rate / nodes / per_node;
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace yoke::plan
