// Where the ranks of a measured collective come from: processes of a job on the nodes of the cluster or on this
// machine, processes that mpirun starts, threads, or a launcher that started this very process as one of them.
// Everything around it (options, tables, files, history) does not know.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/bench/measure_collective.h"
#include "yoke/job/rank_place.h"
#include "yoke/rank/transport.h"

namespace yoke {

enum class Beside { kNothing, kMpi, kNccl, kSocket };
constexpr auto enum_names(Beside) {
  return std::array{std::pair{"nothing", Beside::kNothing}, std::pair{"mpi", Beside::kMpi},
                    std::pair{"nccl", Beside::kNccl}, std::pair{"socket", Beside::kSocket}};
}

class Node;  // yoke/fleet/node.h

struct RankRequest {
  int ranks = 0;  // in all; 0: one for each node of the cluster, else two
  Transport transport = Transport::kAuto;
  Beside beside = Beside::kNothing;
  std::optional<Cluster> cluster;
  bool oversubscribe = false;  // more than four ranks for each core are meant
  std::vector<std::shared_ptr<Node>> reached = {};  // of the cluster: see JobSpec
};

// How many ranks the request stands for, and what carries their data.
int rank_count(const RankRequest& request);
Carrier carrier_of(const RankRequest& request);

// Runs the measurement on all ranks and returns what rank 0 has; the sink is told in the caller's thread.
CollectiveRun run_ranks(const RankRequest& request, const CollectiveOptions& options, CollectiveSink* sink);

// This process is one of the ranks: takes its part, with the sink on rank 0. Rank 0 returns the run, the others
// nothing.
std::optional<CollectiveRun> run_as_rank(const RankPlace& place, const RankRequest& request,
                                         const CollectiveOptions& options, CollectiveSink* sink);

// `yoke bench-rank`, which run_ranks starts on the nodes; rank 0 writes the run to standard output, an event a line.
std::optional<int> run_bench_part(const std::vector<std::string>& arguments);
// The same for `yoke bench recovery`.
std::optional<int> run_recovery_part(const std::vector<std::string>& arguments);

}  // namespace yoke
