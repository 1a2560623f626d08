// Which ranks a measured collective is asked for, and what cannot be asked for: said once, before any rank is started.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/bench/collective_options.h"
#include "yoke/job/rank_place.h"
#include "yoke/rank/transport.h"
#include "yoke/spec/cluster.h"

namespace yoke::fleet {
class Node;  // yoke/fleet/node.h
}
namespace yoke::bench {

enum class Baseline { kNothing, kMpi, kNccl, kSocket };
constexpr auto enum_names(Baseline) {
  return std::array{std::pair{"nothing", Baseline::kNothing}, std::pair{"mpi", Baseline::kMpi},
                    std::pair{"nccl", Baseline::kNccl}, std::pair{"socket", Baseline::kSocket}};
}

struct RankRequest {
  int ranks = 0;  // in all; 0: one for each node of the cluster, else two
  rank::Transport transport = rank::Transport::kAuto;
  Baseline baseline = Baseline::kNothing;
  std::optional<spec::Cluster> cluster = {};
  bool oversubscribe = false;                              // more than four ranks for each core are meant
  std::vector<std::shared_ptr<fleet::Node>> reached = {};  // of the cluster: see JobSpec
  std::function<void(const std::string&)> on_notice = {};  // of ranks and rails; else to standard error
};

// How many ranks the request stands for, and what carries their data.
int rank_count(const RankRequest& request);
rank::Transport transport_of(const RankRequest& request);

// Throws Error(kUsage) for a choice of options that contradict each other, kUnsupported for what this machine lacks.
void check_request(const RankRequest& request, const CollectiveOptions& options);

// What was asked for of a process that a launcher started as one of several ranks.
struct LaunchedRequest {
  std::optional<int> ranks = {};
  int ranks_per_process = 1;
  rank::Transport transport = rank::Transport::kAuto;
  Baseline baseline = Baseline::kNothing;
};
// Throws Error(kUsage) for options that the launcher has decided otherwise.
void check_launched(const job::RankPlace& place, const LaunchedRequest& request);

}  // namespace yoke::bench
