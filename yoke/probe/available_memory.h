// How much memory a program may still take without freezing the machine: what the kernel calls available, or what a
// memory limit around us leaves, whichever is less. The total, by which nccl-tests goes, is wrong wherever other
// programs run or a GPU shares the memory.
#pragma once
#include <optional>

#include "yoke/base/file_tree.h"
#include "yoke/base/units.h"

namespace yoke::probe {

// MemAvailable of /proc/meminfo, and the limits of the control groups (version 2 or 1) from ours up to the root.
std::optional<Bytes> available_memory(const FileTree& tree);

// MemTotal of /proc/meminfo.
std::optional<Bytes> total_memory(const FileTree& tree);

// The least limit of these control groups; nothing where none is set.
std::optional<Bytes> memory_limit(const FileTree& tree);

}  // namespace yoke::probe
