// What a node lacks for building, downloading and running engines, found before the day.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/agent/action.h"
#include "yoke/base/units.h"

namespace yoke::launch {

struct PrepAnswer {
  std::vector<std::string> tools;  // of those that are looked for, which are there
  std::string docker_problem;      // why Docker cannot be used; empty: it can
  Bytes disk_free{0};              // in the home of the user
  std::string architecture;        // of the GPU, as the compiler names it: "sm_121"; empty: no GPU, or not known
  std::optional<std::string>
      nccl_without;  // the newest NCCL that has no code for it; absent: one has, or none is there
  int nccl_builds = 0;
  std::string endpoint_problem;  // why the model server cannot be reached; empty: it can
  Seconds endpoint_time{0};      // until it answered
  friend bool operator==(const PrepAnswer&, const PrepAnswer&) = default;
};

struct PrepNeed {
  std::string node, what, fix;
  bool required = true;  // else it is only needed to build or to measure
};

PrepAnswer prep_here();
void from_json(const Document& document, PrepAnswer& answer);
Document answer_prep_look(const Document& question, agent::AgentContext& context);
// Pure.
std::vector<PrepNeed> evaluate_prep(const std::string& node, const PrepAnswer& answer);

}  // namespace yoke::launch
