// What the kernel tells of processes and memory, for a supervisor: who stands still, who carries a job's tag, and
// whether the kernel killed for want of memory.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/process_tree.h"
#include "yoke/base/units.h"

namespace yoke::job {

// True where this process, or a descendant that one of its threads started, is stopped by a signal. A process that a
// debugger holds is not. Follows parents only: cheap enough for five times a second.
bool is_stopped(pid_t root);

// How many processes the kernel has killed for want of memory in this process's cgroup, or where none tells, on the
// machine. Nothing where the kernel does not count.
std::optional<std::uint64_t> count_out_of_memory_kills();

// All processes whose environment holds this text, but for ourselves.
std::vector<ProcessId> find_tagged_processes(const std::string& tag);
// SIGTERM, SIGKILL after the grace, until none is left or 5 s have passed; how many were found.
int end_tagged_processes(const std::string& tag, Seconds grace);

}  // namespace yoke::job
