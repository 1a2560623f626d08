// Finds what descends from a program. A process group is not enough: daemons leave it. So every child carries a random
// token in its environment, which all its descendants inherit, and /proc tells who has it. Rejected: a child subreaper
// (it would adopt the orphans of the whole program, and wait() of libraries), PR_SET_PDEATHSIG (it fires when the
// *thread* that forked ends), cgroups (need root or a user manager).
#pragma once
#include <sys/types.h>

#include <compare>
#include <optional>
#include <set>
#include <string_view>

namespace yoke {

inline constexpr std::string_view kProcessTokenVariable = "YOKE_PROCESS";

// A process and when it started, in the kernel's ticks since boot: numbers come again, the pair does not.
struct ProcessId {
  pid_t pid = 0;
  unsigned long long started = 0;
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

// Nothing where it has gone, or is a zombie.
std::optional<ProcessId> living_process(pid_t pid);

// The living processes that carry the token, are among `known`, or have a parent that is one of these.
std::set<ProcessId> find_process_tree(const std::set<ProcessId>& known, std::string_view token);

}  // namespace yoke
