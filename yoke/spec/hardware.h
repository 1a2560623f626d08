// The catalogue of machines that yoke knows by name, with what their data sheets promise. A cluster file's own
// expectations (fabric.rail_rate, compute) come before these.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::spec {

struct Hardware {
  std::string_view name;  // as in a cluster file
  std::string_view title;
  std::string_view gpu;
  int gpus = 1;
  int nvlinks = 0;   // of one GPU
  Bytes gpu_memory;  // usable, of one GPU; on unified memory what the system sees
  bool unified = false;
  BytesPerSecond gpu_memory_bandwidth;
  BitsPerSecond rail_rate;  // of one independent network path: half a port on a Spark, a NIC on a server
  int rails_per_cable = 1;
  BitsPerSecond management_rate;
};

std::span<const Hardware> hardware_catalogue();
const Hardware* find_hardware(std::string_view name);  // null when unknown
std::vector<std::string> hardware_names();

// A GPU of this name lives of the system's memory, whatever its driver says of a memory of its own.
bool has_unified_memory(std::string_view gpu_name);

}  // namespace yoke::spec
