// One folder on all nodes of a cluster, copied over the rails and compared by hash.
//
//   Fleet fleet(cluster.nodes, {});
//   const SyncReport report = sync_folder(cluster, fleet, {.folder = "/models/llama"});
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/fleet/fleet.h"
#include "yoke/link/pairs.h"
#include "yoke/sync/pieces.h"

namespace yoke::sync {

struct SyncOptions {
  std::string folder;               // on the source, absolute
  std::string to;                   // on the others, absolute
  int source = 0;                   // its place in the cluster file
  std::optional<std::string> rail;  // only this one
  bool dry_run = false;             // compare only
};

struct RailShare {
  std::string name;
  std::uint64_t bytes = 0;
  std::string problem;
};

struct SyncedNode {
  std::string name, from;
  std::uint64_t bytes = 0;  // that were missing or different
  std::uint64_t files = 0;  // that were
  Seconds time{0};          // of the copy
  std::uint64_t damaged = 0;
  std::vector<RailShare> rails;
};

struct SyncReport {
  std::uint64_t files = 0, bytes = 0;  // of the folder
  std::vector<SyncedNode> nodes;
};

// Who sends to whom, and when: in each round every node that has a rail to one which has the folder. Pure. Throws
// Error(kInvalid) where some node is never reached.
struct Transfer {
  int from = 0, to = 0;
  std::vector<link::PairRail> rails;  // `a` is the sender's end
};
std::vector<std::vector<Transfer>> plan_rounds(const spec::Cluster& cluster, int source,
                                               const std::optional<std::string>& rail);

SyncReport sync_folder(const spec::Cluster& cluster, fleet::Fleet& fleet, const SyncOptions& options);

}  // namespace yoke::sync
