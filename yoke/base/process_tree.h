// Finds what descends from a program. A process group is not enough: daemons leave it. So every child carries a random
// token in its environment, which all its descendants inherit, and /proc tells who has it. Rejected: a child subreaper
// (it would adopt the orphans of the whole program, and wait() of libraries), PR_SET_PDEATHSIG (it fires when the
// *thread* that forked ends), cgroups (need root or a user manager).
#pragma once
#include <sys/types.h>

#include <compare>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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
std::vector<pid_t> living_children();  // of this process

// Who belongs to a program: those that carry its token, whose parent belongs to it, or that are in a session in which
// one of it was seen. So also an environment that was cleaned (sshd, sudo) hides only what changed its session after
// its parent was gone.
class ProcessTree {
 public:
  ProcessTree(pid_t root, std::string token);  // a child of ours that leads its own session, and is not yet reaped

  void look();  // as it is now; what was found before is remembered, also where it has lost its parent since
  const std::set<ProcessId>& living() const { return living_; }

 private:
  void find();

  std::string token_;
  std::set<ProcessId> living_;
  std::set<pid_t> sessions_;
};

}  // namespace yoke
