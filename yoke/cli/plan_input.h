// What `yoke plan` reads before it plans: a model by name, folder or file, and machines by name, file, capture or
// probe.
#pragma once
#include <optional>
#include <string>

#include "yoke/cli/command.h"
#include "yoke/plan/planner.h"

namespace yoke {

struct PlannedModel {
  std::optional<ModelFacts> language;
  std::optional<ImageModelFacts> image;
  const plan::WeightFormat* format = nullptr;  // as stored; null where the name says nothing
  double file_bytes = 0;                       // from the headers of the files; 0: not known
};

// A catalogue name, a folder with config.json (and safetensors, for exact sizes), a config.json, or a size ("70B").
PlannedModel read_planned_model(const std::string& text);

// "2xspark", a cluster file, the JSON of 'yoke probe', a capture's folder, "here"; nothing: the cluster file of the
// session.
plan::Machines read_machines(const Session& session, const std::optional<std::string>& text);

}  // namespace yoke
