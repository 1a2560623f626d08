// Totals of counters to rates: pure arithmetic over two samples. A counter that went backwards was reset (a driver was
// loaded again, the node booted) unless it has 32 bits and wrapped; a rate over a jump of the clock is no rate. Both
// are absent, never 0 and never a spike.
#pragma once
#include <cstdint>
#include <optional>

#include "yoke/base/units.h"
#include "yoke/watch/sample.h"

namespace yoke::watch {

// What a counter can grow by in a second at most: 2e11 bytes/s is 1.6 Tb/s, twice the fastest port.
inline constexpr double kMaxBytesPerSecond = 2e11;

// How much a counter grew: nothing where either is missing, or it was reset. `most` is the largest growth that can be.
std::optional<double> growth(const Total& before, const Total& after, double most);
// The same over a time by a clock that does not jump; nothing where no time passed.
std::optional<double> rate(const Total& before, const Total& after, Seconds elapsed,
                           double most_per_second = kMaxBytesPerSecond);

struct RailRates {
  std::optional<BytesPerSecond> received, sent;                 // by the interface
  std::optional<BytesPerSecond> rdma_received, rdma_sent;       // by the RDMA port
  std::optional<double> errors, discards, retransmits, pauses;  // how many since the sample before
  std::optional<double> pauses_sent, discards_received;         // of these, by the NIC
  friend bool operator==(const RailRates&, const RailRates&) = default;
};

struct GpuRates {
  std::optional<BytesPerSecond> nvlink_received, nvlink_sent;
  std::optional<double> thermal_share, power_share;  // of the time in which the clock was held down
  std::optional<double> xids, ecc_uncorrected;       // how many since the sample before
  friend bool operator==(const GpuRates&, const GpuRates&) = default;
};

struct EngineRates {
  std::optional<double> prompt_tokens, generated_tokens;  // per second
  friend bool operator==(const EngineRates&, const EngineRates&) = default;
};

// In the order of the later sample's lists.
struct Rates {
  Seconds elapsed{};
  std::optional<double> cpu_busy;                         // 0 to 1, of all cores
  std::optional<double> memory_some, memory_full;         // share of the time in which tasks waited for memory
  std::optional<BytesPerSecond> memory_available_change;  // negative: it is going
  std::optional<BytesPerSecond> disk_read, disk_written;  // all disks
  std::optional<double> tcp_retransmits;                  // since the sample before
  std::vector<RailRates> rails;
  std::vector<GpuRates> gpus;
  std::vector<EngineRates> engines;
};

// `before` may be missing: then all rates are.
Rates rates_between(const Sample* before, const Sample& after);

}  // namespace yoke::watch
