// What `yoke plan` reads before it plans: a model by name, folder or file, and machines by name, file, capture or
// probe.
#pragma once
#include <optional>
#include <string>

#include "yoke/plan/planner.h"

namespace yoke::predict {

struct PlannedModel {
  std::optional<spec::ModelFacts> language;
  std::optional<spec::ImageModelFacts> image;
  const plan::WeightFormat* format = nullptr;  // as stored; null where the name says nothing
  double file_bytes = 0;                       // from the headers of the files; 0: not known
};

// A catalogue name, a folder with config.json (and safetensors, for exact sizes), a config.json, or a size ("70B").
PlannedModel read_planned_model(const std::string& text);

// "2xspark", a cluster file, the JSON of 'yoke probe', a capture's folder, "here"; nothing: `cluster`. What 'yoke bench
// calibrate' measured on this machine or cluster replaces the catalogue's figures.
struct MachinesAsked {
  std::optional<std::string> on = {};
  std::optional<spec::Cluster> cluster = {};
  std::optional<int> nodes = {};  // the first ones of a cluster file
  std::string calibration = {};   // a file, or "none"; empty: what is kept for these machines
};
plan::Machines read_machines(const MachinesAsked& asked);

// What yoke's engine would hold on each of so many ranks; empty where it cannot run the folder's model.
std::vector<plan::RankWeights> read_rank_weights(const std::string& model);

}  // namespace yoke::predict
