// What a measured collective is asked to do: the options of nccl-tests, and what yoke adds. Plain data with a JSON
// round trip, so that a job can hand it to ranks on other nodes.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/comm/communicator.h"

namespace yoke::bench {

enum class Blocking {  // -z
  kNone = 0,
  kWaitAndBarrier = 1,      // after each -m operations; the barrier's time counts
  kWait = 2,                // after each -m operations
  kWaitBarrierOutside = 3,  // as 1, but the barrier's time does not count
};
constexpr auto enum_names(Blocking) {
  return std::array{std::pair{"none", Blocking::kNone}, std::pair{"wait-and-barrier", Blocking::kWaitAndBarrier},
                    std::pair{"wait", Blocking::kWait},
                    std::pair{"wait-barrier-outside", Blocking::kWaitBarrierOutside}};
}

enum class RankAverage { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };  // -a
constexpr auto enum_names(RankAverage) {
  return std::array{std::pair{"rank-0", RankAverage::kRank0}, std::pair{"mean", RankAverage::kMean},
                    std::pair{"least", RankAverage::kMin}, std::pair{"most", RankAverage::kMax}};
}

// The slowest path that data must take, for the verdict.
struct LinkLimit {
  BitsPerSecond rail_rate;
  int rails = 1;          // of a node that carry at once
  std::string source;     // "the cluster file", "--link-rate"
  double share = 1;       // of them that the operation's bus bandwidth can be: below 1 where others' data passes too
  std::string path = {};  // in words, where it is not simply the rails: "the management network"
  // By how much NCCL may rightly exceed it: its tree over two nodes moves each byte once where a ring moves it nearly
  // twice, and NVSwitches that reduce (NVLS) take half of the traffic from the links.
  double excess = 1;

  BytesPerSecond whole() const { return to_bytes_per_second(rail_rate * (rails * share)); }
  friend bool operator==(const LinkLimit&, const LinkLimit&) = default;
};

struct CollectiveOptions {
  comm::CollectiveKind kind = comm::CollectiveKind::kAllReduce;
  Bytes size_min{32LL << 20};  // -b
  Bytes size_max{32LL << 20};  // -e
  Bytes step{1LL << 20};       // -i, where the factor is 1
  int factor = 1;              // -f
  int iterations = 20;         // -n
  int warmup_iterations = 1;   // -w
  int aggregate = 1;           // -m
  int cycles = 1;              // -N; 0: without end
  int checks = 1;              // -c
  int threads = 1;             // -t and -g: only shown, the number of ranks is the communicator's
  int gpus = 1;
  std::vector<tensor::DType> types{tensor::DType::kF32};  // -d
  std::vector<comm::ReduceOp> ops{comm::ReduceOp::kSum};  // -o
  int root = 0;                                           // -r; -1: every root in turn
  Blocking blocking = Blocking::kNone;                    // -z
  RankAverage average = RankAverage::kMean;               // -a
  bool report_cpu_time = false;                           // -C
  bool report_timestamps = false;                         // -S
  bool per_iteration = false;                             // -I
  int per_iteration_skip = 0;                             // -K
  int unalign = 0;                                        // -u, in elements
  Seconds timeout{30};                                    // -T, in which an operation must get on
  std::optional<LinkLimit> limit;
  std::optional<double> bus_bandwidth_wanted;  // NCCL_TESTS_MIN_BW, in GB/s
  std::vector<std::string> notes;              // said on top as comments
  bool trace = false;                          // keep when each rank began and ended each iteration
};

// Throws Error(kUsage) for what makes no sense: -b above -e, steps that never end, a root that is no rank.
void validate(const CollectiveOptions& options, int ranks);

// The sizes of the rows, in bytes. A factor cannot leave 0, so 0 is followed by 16 (the size of one part).
std::vector<std::size_t> row_sizes(const CollectiveOptions& options);

// The types and operations by their names in nccl-tests ("float", "bfloat16", "all"). What yoke cannot do is an
// Error(kUsage) that says what it can.
std::vector<tensor::DType> parse_types(const std::string& name);
std::vector<comm::ReduceOp> parse_ops(const std::string& name);
std::string_view nccl_name(tensor::DType type);

Document to_json(const CollectiveOptions& options);
void from_json(const Document& document, CollectiveOptions& options);

}  // namespace yoke::bench
