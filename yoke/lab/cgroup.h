// A memory limit per node, by cgroup v2 where its memory controller is there, else v1.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "yoke/base/units.h"

namespace yoke::lab {

struct MemoryGroup {
  std::filesystem::path folder;
  enum class Version { kV1, kV2 } version = Version::kV2;

  std::filesystem::path usage_file() const;
  void join() const;  // this process, and with it all that it starts
};

// The group of a lab's node, whether it exists or not; nothing where this machine lets us make none.
std::optional<MemoryGroup> memory_group(const std::string& lab, int node);

void create_memory_group(const std::string& lab, const MemoryGroup& group, Bytes limit);
void remove_memory_groups(const std::string& lab);  // once nothing runs in them; what is not there is no error

}  // namespace yoke::lab
