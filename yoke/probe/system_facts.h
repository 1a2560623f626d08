// What no file, table or library of NVIDIA tells: the clock's state, the environment, which NCCL libraries lie where.
// One of the probe's sources; system.json in a capture, where it may be missing.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/units.h"
#include "yoke/spec/machine.h"

namespace yoke {

struct SystemFacts {
  std::optional<std::string> architecture;  // as uname says: older kernels have no file for it
  std::optional<std::string> home;
  std::optional<std::string> container;  // that only the environment tells: "kubernetes"
  std::optional<bool> clock_synchronized;
  std::optional<Seconds> clock_error;
  std::vector<NetworkSetting> environment;
  std::vector<NcclBuild> nccl;
  friend bool operator==(const SystemFacts&, const SystemFacts&) = default;
};

SystemFacts read_system();
Document to_json(const SystemFacts& facts);
SystemFacts system_from_json(const Document& document);

// Whether a variable steers the network of NCCL, UCX, Gloo or Open MPI. No other variable is looked at or written down.
bool is_network_variable(std::string_view name);

}  // namespace yoke
