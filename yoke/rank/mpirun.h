// This program as ranks that mpirun starts, on this machine or on the nodes of a cluster (where it is carried first).
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/job/job.h"
#include "yoke/spec/cluster.h"

namespace yoke::rank {

struct MpirunTask {
  int ranks = 2;
  std::optional<spec::Cluster> cluster;
  std::vector<std::string> arguments;  // of this program
  std::string variable;                // of the ranks' environment
  std::string task;                    // its value
  bool yields = false;                 // ranks that wait give way: for those that compute with several threads besides
  std::function<void(std::string_view line)> on_output;      // what the ranks write to standard output
  std::function<void(std::string_view line)> on_error_line;  // and to standard error
};

// Returns when all ranks ended well; else throws what they said of it by print_rank_error, or else what mpirun did.
void run_under_mpirun(const MpirunTask& task);

// To standard error, the last words of a rank that ends: the one that started it knows them by their form.
void print_rank_error(const Error& error);

// What the nodes are to Open MPI: a line for each, with its ranks and how ssh reaches it.
std::string open_mpi_hostfile(const std::vector<job::JobNode>& nodes);

}  // namespace yoke::rank
