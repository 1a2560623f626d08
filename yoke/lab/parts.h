// The running parts of a lab (holder.h), and the only way to find one. A part is what it recorded itself in the lab's
// folder, which is closed to others: its process number, when it started, and since which boot. Command lines and names
// prove nothing: any user can give a process any of them.
//
// A LabPart is held by a pidfd and its folder of /proc, opened once and then checked, so that a number which comes to
// mean another process later leads nowhere.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "yoke/base/files.h"
#include "yoke/base/held_process.h"

namespace yoke::lab {

inline constexpr int kHolderNumber = 0;  // nodes are numbered from 1

class LabPart {
 public:
  pid_t pid() const { return process_.pid(); }
  const HeldProcess& process() const { return process_; }  // a node's ends only when all of the node has

  // A file of its folder in /proc: "root", "fd/10".
  UniqueFd open(const std::string& name, int flags) const;

  // Takes on these namespaces of the part (CLONE_NEWNET and so on), and its user namespace where that is another. That
  // one must be of our own making, and root never enters any: who made it could debug what we start in it. Before any
  // thread is started.
  void enter(int namespaces) const;

 private:
  friend std::optional<LabPart> find_part(const std::string& lab, int number);
  LabPart(HeldProcess process, UniqueFd folder) : process_(std::move(process)), folder_(std::move(folder)) {}
  bool shares_our_user_namespace() const;

  HeldProcess process_;
  UniqueFd folder_;
};

// Nothing where it does not run (a node: is powered off), or belongs to another user.
std::optional<LabPart> find_part(const std::string& lab, int number);

// In a part, before it does anything: from now on it is found. Until then it keeps the lab's lock, which it has from
// its starter; so the one that has the lock finds every part.
void record_part(const std::string& lab, int number);

// Kills them all, or one, and waits until each is gone with all that it had started. The caller has the lab's lock.
void end_parts(const std::string& lab, std::optional<int> number = std::nullopt);

// The network namespace of a node, or of the switch (0). To have the right to enter it, this process is in the lab's
// user namespace then, where that is another; so before any thread is started.
UniqueFd open_network(const std::string& lab, int node);

}  // namespace yoke::lab
