// Which ranks a measured collective is asked for, and what cannot be asked for: said once, before any rank is started.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "yoke/bench/collective_options.h"
#include "yoke/job/rank_place.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/cluster.h"

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
  std::optional<Cluster> cluster = {};
  bool oversubscribe = false;  // more than four ranks for each core are meant
  std::vector<std::shared_ptr<Node>> reached = {};  // of the cluster: see JobSpec
};

// How many ranks the request stands for, and what carries their data.
int rank_count(const RankRequest& request);
Carrier carrier_of(const RankRequest& request);

// Throws Error(kUsage) for a choice of options that contradict each other, kUnsupported for what this machine lacks.
void check_request(const RankRequest& request, const CollectiveOptions& options);

// What was asked for of a process that a launcher started as one of several ranks.
struct LaunchedRequest {
  std::optional<int> ranks = {};
  int ranks_per_process = 1;
  Transport transport = Transport::kAuto;
  Beside beside = Beside::kNothing;
};
// Throws Error(kUsage) for options that the launcher has decided otherwise.
void check_launched(const RankPlace& place, const LaunchedRequest& request);

// What the slowest path carries, as the cluster file says, else the catalogue; an unshaped lab has no limit.
std::optional<LinkLimit> limit_of(const Cluster& cluster);

}  // namespace yoke
