// A control group with a memory limit around a process, where one can be made: the second line behind the guard. It
// counts the host's memory only; memory of CUDA on a GB10 is not charged to it.
#pragma once
#include <sys/types.h>

#include <filesystem>

#include "yoke/base/units.h"

namespace yoke::launch {

class GuardGroup {
 public:
  GuardGroup(pid_t process, Bytes limit);  // what cannot be made is left out
  GuardGroup(const GuardGroup&) = delete;
  GuardGroup& operator=(const GuardGroup&) = delete;
  ~GuardGroup();
  bool exists() const { return !folder_.empty(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace yoke::launch
