// perftest (ib_write_bw, ib_write_lat) as a process: its command line, and the tables that it prints. It drives one
// device a process, so both halves at once are two processes. Pure: who runs them is measure_rdma.h.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/link/rdma_port.h"

namespace yoke::link {

struct PerftestRun {
  enum class Kind { kBandwidth, kBandwidthBothWays, kLatency } kind = Kind::kBandwidth;
  std::string device;
  int gid_index = 0;
  int port = 0;           // TCP, by which the two sides find each other
  std::string peer = {};  // empty: this is the side that waits
  Seconds time{2};        // of a bandwidth
  std::int64_t size = 1 << 20;
  int count = 1000;  // of a latency
};
std::vector<std::string> perftest_argv(const PerftestRun& run);

struct PerftestBandwidth {
  std::int64_t size = 0;
  std::int64_t iterations = 0;
  BitsPerSecond average;
};

// Half of the round trip, as ib_write_lat gives it.
struct PerftestLatency {
  std::int64_t size = 0;
  std::int64_t iterations = 0;
  Seconds min, max, typical, mean, p99;
};

// The rows of the table, whatever stands around it. Units are those that the table's head names. Throws Error(kInvalid)
// where there is no table, or a row that is none; what perftest itself complained of is in the message.
std::vector<PerftestBandwidth> parse_perftest_bandwidth(std::string_view output);
std::vector<PerftestLatency> parse_perftest_latency(std::string_view output);

}  // namespace yoke::link
