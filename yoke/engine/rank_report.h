// What each rank of an engine tells the others before it loads, and what all of them conclude from that. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/engine/fit.h"

namespace yoke::engine {

struct RankReport {
  std::string node;
  int local_size = 1;             // ranks of this node
  std::int64_t available = 0;     // bytes of memory that the node has left, for all of its ranks
  bool unified = false;           // a GPU lives of the same memory: more of it stays free
  int devices = 0;                // GPUs of the node, where `available` is of one of them; its ranks use them in turns
  std::int64_t cache_tokens = 0;  // as decided in an earlier epoch: this rank has its memory; 0: not yet
  std::vector<std::int64_t> cut;  // the first layers of all stages, as decided then
  std::string machine;            // the same for ranks whose nodes share one kernel, as those of a lab do
  std::string model;              // ModelFiles::fingerprint()
};
// Where the system does not say how much memory is left.
inline constexpr std::int64_t kMemoryUnknown = std::int64_t{1} << 60;

std::string encode(const RankReport& report);
RankReport decode_report(std::string_view text);

// Error(kConflict) where a rank opened other weights than the others, naming both. Parts of two models would answer,
// and say nonsense. After a death those that have loaded are right.
void check_same_model(const std::vector<RankReport>& reports);

// How many ranks compute on the machine of this one.
int ranks_on_machine(const std::vector<RankReport>& reports, std::size_t rank);

// What each rank may take: the node's memory divided among those of its ranks that have none yet.
std::vector<RankMemory> memory_shares(const std::vector<RankReport>& reports);

}  // namespace yoke::engine
