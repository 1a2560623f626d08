// The memory of a node as its /proc/meminfo should tell it: the kernel's shows the whole machine, whatever the node's
// cgroup allows.
#pragma once
#include <filesystem>
#include <string>

#include "yoke/base/file_tree.h"
#include "yoke/base/units.h"

namespace yoke::lab {

// The real text with MemTotal = limit, MemFree and MemAvailable = what is not used of it, no swap, and no other amount
// beyond the total.
std::string lab_meminfo(const FileTree& real, Bytes limit, Bytes used);

// What a cgroup uses, without the file cache that the kernel would give back. By its usage file, memory.current
// (version 2) or memory.usage_in_bytes (version 1), with memory.stat beside it.
Bytes cgroup_memory_used(const std::filesystem::path& usage_file);

}  // namespace yoke::lab
