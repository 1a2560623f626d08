// One process at a time: a lock (flock) on a file or a folder, waited for with a limit, and let go of when this goes.
//
//   const FileLock lock(folder / "lock", {.busy = "another yoke is changing this", .hint = "wait for it"});
//
// A process that is forked meanwhile and keeps the descriptor keeps the lock too. The one that has the lock may remove
// the file: those that wait then take the lock of the file that takes its place.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "yoke/base/files.h"
#include "yoke/base/units.h"

namespace yoke {

struct FileLockOptions {
  Seconds wait{10};
  std::string busy;  // what the Error(kConflict) says at the limit
  std::string hint = {};
  std::function<void()> prepare = {};  // before each try: makes the folder that is to be locked, or that of the file
  enum class Interrupt { kEndsTheWait, kIsIgnored } interrupt = Interrupt::kEndsTheWait;  // Ctrl-C
};

class FileLock {
 public:
  // A file is made where it is missing, with mode 0600.
  FileLock(const std::filesystem::path& file, const FileLockOptions& options);
  const UniqueFd& fd() const { return fd_; }

 private:
  UniqueFd fd_;
};

}  // namespace yoke
