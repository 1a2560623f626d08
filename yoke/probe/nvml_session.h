// NVML kept open, for who asks again and again: what a GPU does at this moment, cheaply. nvml_facts.h asks once for
// what a GPU is. Every value may be missing: a GB10 answers "not supported" to many questions, and an older driver
// lacks some functions. A GPU that falls off the bus is reported as lost, and is back when it answers again.
//
//   NvmlSession nvml;
//   for (const NvmlLoad& gpu : nvml.read()) …
//
// One thread owns it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/probe/nvml_facts.h"

namespace yoke::probe {

struct NvmlLoad {
  int index = 0;
  std::optional<std::string> name = {}, uuid = {};
  std::optional<std::string> lost = {};  // why it cannot be asked any more
  std::optional<int> utilization_percent = {}, memory_utilization_percent = {};
  std::optional<int> sm_clock_mhz = {}, sm_clock_max_mhz = {}, memory_clock_mhz = {}, temperature_c = {};
  std::optional<double> power_w = {}, power_limit_w = {};
  std::optional<std::int64_t> energy_mj = {};
  std::vector<std::string> clock_limits = {};
  std::optional<std::int64_t> power_violation_ns = {}, thermal_violation_ns = {};
  std::optional<Bytes> memory_total = {}, memory_used = {};
  std::optional<int> pcie_width = {};
  std::optional<std::int64_t> pcie_replays = {}, ecc_corrected = {}, ecc_uncorrected = {};
  std::optional<std::int64_t> nvlink_rx_bytes = {}, nvlink_tx_bytes = {};
  std::optional<double> engine_active = {}, tensor_active = {}, memory_active = {};  // 0 to 1, since the look before
  std::optional<std::int64_t> xid_count = {}, xid_last = {};                         // since this session began
  std::vector<NvmlProcess> processes = {};
};

class NvmlSession {
 public:
  NvmlSession();
  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  // Why NVML, although there, shows nothing; nothing where it does, or where there is no NVML.
  const std::optional<std::string>& failure() const;
  // All GPUs that were ever there in this session, by index. None without NVML. Does not throw.
  std::vector<NvmlLoad> read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::probe
