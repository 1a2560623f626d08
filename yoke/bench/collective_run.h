// What a measured collective gave: plain data with a JSON round trip, from which the table, the files and the history
// are written. Times are in microseconds, bandwidths in GB/s (1e9 bytes); docs/performance.md defines each number.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/bench/collective_options.h"
#include "yoke/bench/sample_stats.h"
#include "yoke/spec/rank_trace.h"

namespace yoke::bench {

// Where the buffers of a rank lie.
enum class RankMemory {
  kHost,
  kGpu,      // on a GPU with memory of its own, and on the host to fill and check them
  kUnified,  // the same where both are one memory
};
constexpr auto enum_names(RankMemory) {
  return std::array{std::pair{"host", RankMemory::kHost}, std::pair{"gpu", RankMemory::kGpu},
                    std::pair{"unified", RankMemory::kUnified}};
}

// One rank, as the table's head lists it.
struct RankFacts {
  std::string host;
  int pid = 0;
  int device = 0;                  // which of the host's processors or GPUs
  std::string bus = "0000:00:00";  // of a GPU
  std::string device_name;
  RankMemory memory = RankMemory::kHost;
  std::int64_t memory_available = 0;      // of the host, in bytes; 0: not known
  std::int64_t gpu_memory_available = 0;  // of a GPU that has its own
  friend bool operator==(const RankFacts&, const RankFacts&) = default;
};

// Facts of the calling process, for a rank on a processor; `device` tells the ranks of one host apart.
RankFacts facts_of_this_process(int device);

// The rank that the others wait for: by how much it arrives after the first, in the median.
struct Straggler {
  int rank = 0;
  double late = 0;
};

struct PlacementResult {
  double time = 0;      // of one operation, over ranks by -a
  double cpu_time = 0;  // until the last operation was handed over
  double algorithm_bandwidth = 0;
  double bus_bandwidth = 0;
  std::optional<std::int64_t> wrong;            // absent: not checked, or never in place
  std::vector<double> rank_times;               // the mean of each rank
  std::vector<double> rank_late;                // the median lateness of each rank
  std::vector<std::vector<double>> iterations;  // [rank][iteration]
  SampleStats stats;                            // of the slowest rank in each iteration
  Straggler straggler;
};

// The same size by the plain library, in turns with ours.
struct BaselineResult {
  double ours = 0;  // medians of the slowest rank in each iteration
  double theirs = 0;
  std::optional<std::int64_t> wrong;
};

struct CollectiveRow {
  std::int64_t size = 0;  // bytes
  std::int64_t count = 0;
  std::string type;  // as nccl-tests names it
  std::string op;    // "none" where there is none
  int root = -1;
  PlacementResult out_of_place;
  PlacementResult in_place;
  std::optional<BaselineResult> baseline;
  std::string time;  // of day, when the row ended
};

// An Error as data, for a run that crosses to another process.
struct Failure {
  std::string code;  // as in JSON
  std::string message;
  std::string hint;
};

struct CollectiveRun {
  CollectiveOptions options;
  std::string transport;  // the communicator's own words
  std::vector<RankFacts> ranks;
  std::optional<std::string> baseline;     // the plain library's name
  std::optional<std::int64_t> reduced_to;  // the largest size that memory allowed, where that is less than asked
  std::vector<CollectiveRow> rows;
  std::string started;  // local time of day, as nccl-tests writes it
  std::string ended;
  std::optional<Failure> failure;            // what ended it early; rows before it hold
  std::vector<spec::RankTrace> traces = {};  // of all ranks, where the options ask for them

  std::int64_t wrong() const;
  double mean_bus_bandwidth() const;  // over every row and both placements, as nccl-tests has it
  bool passed() const;  // nothing wrong, no failure, bandwidth as wanted; not of one rank alone, which shows nothing
};

Failure failure_of(const Error& error);
Error to_error(const Failure& failure);

// "2026-11-15 09:30:00", local.
std::string time_of_day();

Document to_json(const CollectiveRow& row);
void from_json(const Document& document, CollectiveRow& row);
Document to_json(const CollectiveRun& run);
void from_json(const Document& document, CollectiveRun& run);
Document to_json(const RankFacts& facts);
void from_json(const Document& document, RankFacts& facts);

}  // namespace yoke::bench
