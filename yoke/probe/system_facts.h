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

namespace yoke::probe {

// The control register of a PCI bridge's access control services (ACS): which of its packets must go through the root.
struct AcsControl {
  std::string bridge;  // "0000:17:00.0"
  int control = 0;
  friend bool operator==(const AcsControl&, const AcsControl&) = default;
};

struct SystemFacts {
  std::optional<std::string> architecture;  // as uname says: older kernels have no file for it
  std::optional<std::string> home;
  std::optional<std::string> container;  // that only the environment tells: "kubernetes"
  std::optional<bool> clock_synchronized;
  std::optional<Seconds> clock_error;
  std::vector<spec::NetworkSetting> environment;
  std::vector<spec::NcclBuild> nccl;
  std::optional<std::string> allocation = {};  // "Slurm job 4711"
  std::optional<spec::FabricManager> fabric_manager = {};
  std::vector<AcsControl> acs = {};      // bridges whose register is not zero; needs root
  std::vector<spec::XidLine> xids = {};  // of the kernel log since the machine started, where we may read it
  friend bool operator==(const SystemFacts&, const SystemFacts&) = default;
};

// Reads the register from a device's configuration space; nothing where the space was not read whole (only root gets
// more than 64 bytes) or the device has no such services.
std::optional<int> parse_acs_control(std::string_view configuration);

enum class NcclSearch {
  kAll,     // looks through the folders of libraries and of Python
  kNone,    // leaves `nccl` empty, and what the driver's services tell: in milliseconds
  kHealth,  // leaves `nccl` empty alone
};
SystemFacts read_system(NcclSearch search = NcclSearch::kAll);
Document to_json(const SystemFacts& facts);
void from_json(const Document& document, SystemFacts& facts);

// Whether a variable steers the network of NCCL, UCX, Gloo or Open MPI. No other variable is looked at or written down.
bool is_network_variable(std::string_view name);

}  // namespace yoke::probe
