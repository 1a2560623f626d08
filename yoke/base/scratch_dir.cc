// ScratchDir of files.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

fs::path scratch_parent(const std::optional<fs::path>& parent) {
  const char* base = std::getenv("TMPDIR");
  return parent.value_or(base && *base ? base : "/tmp");
}

enum class FolderLock { kTaken, kHeldByOther, kImpossible };

// Of the folder that `name` leads to now: one that was removed meanwhile counts as another's.
FolderLock lock_folder(const UniqueFd& folder, const fs::path& name) {
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? FolderLock::kHeldByOther : FolderLock::kImpossible;
  struct stat held {};
  struct stat there {};
  const bool same = fstat(folder.get(), &held) == 0 && lstat(name.c_str(), &there) == 0 &&
                    held.st_ino == there.st_ino && held.st_dev == there.st_dev;
  return same ? FolderLock::kTaken : FolderLock::kHeldByOther;
}

bool is_scratch_name(std::string_view name, std::string_view prefix) {
  constexpr std::size_t kRandomLetters = 6;  // mkdtemp's
  return name.size() == prefix.size() + 1 + kRandomLetters && name.starts_with(prefix) && name[prefix.size()] == '-';
}

}  // namespace

ScratchDir::ScratchDir(std::string_view prefix, const std::optional<fs::path>& parent) {
  // The one that removes abandoned ones may take a new one for such in the moment before it is locked: then another.
  for (;;) {
    std::string name = fmt::format("{}/{}-XXXXXX", scratch_parent(parent).native(), prefix);
    if (!mkdtemp(name.data())) throw system_error(errno, fmt::format("cannot make the scratch folder {}", name));
    lock_ = UniqueFd(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock_ && errno == ENOENT) continue;
    if (lock_ && lock_folder(lock_, name) == FolderLock::kHeldByOther) continue;
    path_ = name;
    return;
  }
}

void ScratchDir::remove_abandoned(std::string_view prefix, const std::optional<fs::path>& parent) {
  std::error_code failure;
  for (fs::directory_iterator entry(scratch_parent(parent), failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const fs::path& found = entry->path();
    if (!is_scratch_name(found.filename().native(), prefix)) continue;
    const UniqueFd folder(open(found.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!folder || fstat(folder.get(), &status) != 0 || status.st_uid != geteuid()) continue;
    std::error_code ignored;
    if (lock_folder(folder, found) == FolderLock::kTaken) fs::remove_all(found, ignored);
  }
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;  // a leftover scratch folder is no reason to end the program
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace yoke
