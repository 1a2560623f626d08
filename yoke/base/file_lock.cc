#include "yoke/base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

namespace yoke {
namespace fs = std::filesystem;
using namespace literals;
namespace {

bool is_still_at(const UniqueFd& fd, const fs::path& file) {
  struct stat held {};
  struct stat there {};
  return fstat(fd.get(), &held) == 0 && stat(file.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
         held.st_dev == there.st_dev;
}

bool try_to_lock(const UniqueFd& fd, const fs::path& file) {
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  throw system_error(errno, fmt::format("cannot lock {}", file.native()));
}

}  // namespace

FileLock::FileLock(const fs::path& file, const FileLockOptions& options) {
  const Deadline deadline = Deadline::after(options.wait);
  for (;;) {
    if (options.prepare) options.prepare();
    std::error_code failure;
    const bool is_folder = fs::is_directory(file, failure);
    fd_ = open_file(file, is_folder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT, 0600);
    if (try_to_lock(fd_, file) && is_still_at(fd_, file)) return;
    if (options.interrupt == FileLockOptions::Interrupt::kEndsTheWait) throw_if_interrupted();
    if (deadline.expired()) throw Error(ErrorCode::kConflict, options.busy, options.hint);
    real_clock().sleep(20_ms);
  }
}

}  // namespace yoke
