// A process held by a descriptor (a pidfd): a signal reaches that very process or nobody, also when its number has come
// to mean another.
//
//   if (const auto head = HeldProcess::open(record.head)) head->send(SIGTERM);
#pragma once
#include <sys/types.h>

#include <optional>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/process_tree.h"

namespace yoke {

class HeldProcess {
 public:
  static std::optional<HeldProcess> open(const ProcessId& process);  // nothing where it has gone

  pid_t pid() const { return pid_; }
  const UniqueFd& fd() const { return fd_; }
  // False where it has gone; an Error where we have no right to.
  bool send(int signal_number) const;
  bool has_ended() const { return wait_until_ended(Deadline::after(Seconds{0})); }
  bool wait_until_ended(Deadline deadline) const;  // false at the deadline

 private:
  HeldProcess(pid_t pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}

  pid_t pid_;
  UniqueFd fd_;
};

}  // namespace yoke
