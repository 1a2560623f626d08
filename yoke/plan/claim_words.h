// A claim as people write it, word by word: the number with its unit, the model, the machines, and settings.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/plan/planner.h"

namespace yoke::plan {

struct ClaimWords {
  double value = 0;
  std::string unit;
  std::optional<spec::ModelFacts> model;
  std::optional<spec::ImageModelFacts> image;
  std::optional<Machines> machines;
  const WeightFormat* format = nullptr;
  std::optional<Engine> engine;
  bool is_training = false;
  bool is_prefill = false;
  double requests = 1;
  std::vector<std::string> unknown;  // words that were not understood
};

ClaimWords read_claim(std::string_view claim);
// Error(kUsage) says which word is missing, and what was perhaps meant.
void refuse_gaps(const ClaimWords& words);

}  // namespace yoke::plan
