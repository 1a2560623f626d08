// What the steps of an engine were made of, as its ranks measured them: plain data with a JSON round trip. Ranks fill a
// RankAccount each; rank 0 joins them (engine/step_book.h). Kept with a run in the history, and read by 'yoke why'.
// Times are seconds.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::spec {

enum class RailState { kUsed, kMissing, kLost };
constexpr auto enum_names(RailState) {
  return std::array{std::pair{"used", RailState::kUsed}, std::pair{"missing", RailState::kMissing},
                    std::pair{"lost", RailState::kLost}};
}

// One connection over one rail to one peer, by the kernel's counts.
struct RailUse {
  std::string rail;  // "A"
  int peer = 0;      // a rank
  std::string peer_node;
  RailState state = RailState::kUsed;
  std::string local, remote;  // addresses
  std::string interface;      // that has the local address; empty: not known
  std::string route;          // the interface by which packets to the peer leave; empty: not known
  double bytes = 0;           // sent
  double busy = 0;            // seconds in which something was on its way
  double held_up = 0;         // of them: waiting for the peer to make room, or for our own buffer
  // The same in steps whose exchanges are long. In others a rail is busy with waiting for acknowledgements.
  double long_bytes = 0;
  double long_busy = 0;
  double segments = 0, segments_again = 0;
  double round_trip = 0, round_trip_min = 0;
  double segment_bytes = 0;  // the largest that is sent

  double long_rate() const { return long_busy > 0 ? 8 * long_bytes / long_busy : 0; }  // bits a second while busy
};

// The steps of one kind on one rank.
struct StepSums {
  double steps = 0;
  double tokens = 0;
  double seconds = 0;   // in all
  double weights = 0;   // products with weights
  double cache = 0;     // attention: reading keys and values
  double others = 0;    // norms, rotary, selection, …
  double exchange = 0;  // with other ranks, waiting for them included
  double exchanges = 0;
  double exchange_bytes = 0;
  double weight_bytes = 0;  // that were read
  double operations = 0;    // of products with weights

  double computing() const { return weights + cache + others; }
  double rest() const { return seconds - computing() - exchange; }  // planning, sampling, the front
};

struct RankAccount {
  int rank = 0;
  std::string node;
  std::string machine;  // the same for nodes that share one kernel, as those of a lab do
  int threads = 1;
  StepSums decode, prefill, mixed;  // mixed: prompts were read beside answers
  double wall = 0;                  // from the first step to the last
  double processor_wait = 0;        // of this rank's threads: ready to run, and no processor free
  double processor_time = 0;
  double throttled = 0;  // by the quota of a control group
  double stolen = 0;     // by the host of this virtual machine, of each processor
  double weights_held = 0;
  double memory_anonymous = 0;  // bytes
  double memory_huge = 0;       // of them in huge pages
  std::string huge_pages;       // "always", "madvise", "never"; empty: not known
  std::vector<RailUse> rails;
};

// What one exchange took on all ranks: its own time is that of the rank that came last, the rest is waiting.
struct ExchangeShares {
  double seconds = 0;           // of a step: the exchange itself
  std::vector<double> waiting;  // of a step, by rank
};

struct StepAccount {
  std::string transport;
  std::vector<RankAccount> ranks;
  ExchangeShares decode, prefill;
};

Document to_json(const RailUse& use);
void from_json(const Document& document, RailUse& use);
Document to_json(const StepSums& sums);
void from_json(const Document& document, StepSums& sums);
Document to_json(const RankAccount& account);
void from_json(const Document& document, RankAccount& account);
Document to_json(const StepAccount& account);
void from_json(const Document& document, StepAccount& account);

}  // namespace yoke::spec
