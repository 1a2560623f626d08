// This program as ranks that mpirun starts, on this machine or on the nodes of a cluster (where it is carried first).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/spec/cluster.h"

namespace yoke {

struct MpirunTask {
  int ranks = 2;
  std::optional<Cluster> cluster;
  std::string variable;                                   // of the ranks' environment
  std::string task;                                       // its value
  std::function<void(std::string_view bytes)> on_output;  // what the ranks write to standard output
};

// Returns when all ranks ended well; else throws what mpirun said.
void run_under_mpirun(const MpirunTask& task);

}  // namespace yoke
