// The options of `yoke plan` that say what is planned, and the request that they make.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "yoke/cli/options.h"
#include "yoke/plan/money.h"
#include "yoke/predict/plan_input.h"

namespace yoke::cli {

// A language model's shape by options: all of it, or what differs from a named model.
struct ShapeArguments {
  std::optional<int> layers, width, heads, kv_heads, head_width, mlp_width, vocabulary;
  std::optional<int> experts, experts_used, expert_width;
  bool any() const;
};
void declare_shape(OptionTable& table, ShapeArguments& arguments);

// `named`: the model that the options change; none: they give all of it. Error(kUsage) says what is missing or cannot
// be. What is left out of a whole shape is guessed, and named as a guess.
predict::PlannedModel shaped_model(const ShapeArguments& arguments, const std::optional<predict::PlannedModel>& named);

// What money.h calculates with; nothing is built in.
struct PriceArguments {
  std::optional<double> kwh, hardware, years, cloud_hour, busy;
  std::string currency = "units";
};

struct PlanArguments {
  std::optional<std::string> model;
  ShapeArguments shape;
  std::optional<std::string> on;
  std::optional<int> nodes;
  std::string calibration;
  std::string goal;
  std::string format;
  std::string engine;
  std::string context;
  std::string requests;
  std::string prompt;
  std::string output;
  std::string cache;
  std::optional<int> draft;
  std::optional<double> acceptance;
  std::optional<int> tensor;
  std::optional<int> pipeline;
  std::optional<int> replicas;
  std::optional<std::string> link_rate;
  std::string topology;
  std::string exchange;
  std::optional<double> oversubscription;
  std::string tokens;
  std::string sequence;
  std::string batch;
  bool lora = false;
  bool embeddings = false;
  std::string size;
  std::optional<int> steps;
  std::optional<int> scale;
  std::optional<std::string> svg;
  std::optional<std::string> replay;
  PriceArguments prices;
};

// Error(kUsage) names the option that cannot be, or does not belong to the goal.
plan::Request request_of(const Session& session, const PlanArguments& arguments);

// A number from 1 to 65536, or `otherwise` where the option was not given.
int positive_or(const std::optional<int>& value, std::string_view option, int otherwise);

}  // namespace yoke::cli
