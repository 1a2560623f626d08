#include "yoke/lab/node_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/lab/parts.h"

namespace yoke::lab {
namespace fs = std::filesystem;
namespace {

constexpr Bytes kFileLimit{64 << 20};

UniqueFd open_root(const std::string& lab, const LabNode& node) {
  const std::optional<LabPart> first = find_part(lab, node.number);
  if (!first) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{} is powered off", node.name),
                fmt::format("'yoke lab fault power-on --node {}' starts it", node.name));
  }
  return first->open("root", O_PATH | O_DIRECTORY);
}

}  // namespace

NodeAccess::NodeAccess(const std::string& lab, const LabNode& node) : node_(node.name), root_(open_root(lab, node)) {}

// Missing where it is not there; every other failure is an Error.
UniqueFd NodeAccess::open(const fs::path& file, int flags) const {
  const open_how how{.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC),
                     .mode = 0,
                     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  for (;;) {
    UniqueFd fd(static_cast<int>(syscall(SYS_openat2, root_.get(), file.c_str(), &how, sizeof how)));
    if (fd || errno == ENOENT) return fd;
    // EAGAIN: something was renamed meanwhile, and the kernel could not be sure.
    if (errno != EAGAIN && errno != EINTR)
      throw system_error(errno, fmt::format("cannot open {} of {}", file.native(), node_));
  }
}

UniqueFd NodeAccess::open_folder_of(const fs::path& file) const {
  UniqueFd folder = open(file.parent_path(), O_RDONLY | O_DIRECTORY);
  if (!folder) throw system_error(ENOENT, fmt::format("cannot open {} of {}", file.parent_path().native(), node_));
  return folder;
}

std::optional<std::string> NodeAccess::read(const fs::path& file) const {
  const UniqueFd fd = open(file, O_RDONLY | O_NONBLOCK);
  if (!fd) return std::nullopt;
  std::string content;
  char buffer[1 << 16];
  while (const std::size_t count = read_some(fd, buffer, sizeof buffer, file)) {
    content.append(buffer, count);
    if (static_cast<std::int64_t>(content.size()) > kFileLimit.value)
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{} of {} is larger than {}", file.native(), node_, yoke::to_string(kFileLimit)));
  }
  return content;
}

void NodeAccess::write(const fs::path& file, std::string_view content, WriteOptions options) const {
  const UniqueFd folder = open_folder_of(file);
  const std::string name = file.filename();
  const std::string temporary = fmt::format("{}.{}", name, random_token_hex(4));
  const UniqueFd fd(
      openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) throw system_error(errno, fmt::format("cannot write {} of {}", file.native(), node_));
  try {
    write_all(fd, content, file);
    if (fchmod(fd.get(), options.mode) != 0 ||
        renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0)
      throw system_error(errno, fmt::format("cannot write {} of {}", file.native(), node_));
  } catch (...) {
    unlinkat(folder.get(), temporary.c_str(), 0);
    throw;
  }
}

void NodeAccess::remove(const fs::path& file) const {
  const UniqueFd folder = open(file.parent_path(), O_RDONLY | O_DIRECTORY);
  if (folder && unlinkat(folder.get(), file.filename().c_str(), 0) != 0 && errno != ENOENT)
    throw system_error(errno, fmt::format("cannot remove {} of {}", file.native(), node_));
}

void NodeAccess::make_folders(const fs::path& folder) const {
  if (open(folder, O_PATH | O_DIRECTORY)) return;
  make_folders(folder.parent_path());
  make_folder_at(open_folder_of(folder), folder.filename());
}

void NodeAccess::make_device(const fs::path& file) const {
  const UniqueFd folder = open_folder_of(file);
  if (mknodat(folder.get(), file.filename().c_str(), S_IFCHR | 0600, makedev(0, 0)) != 0 && errno != EEXIST)
    throw system_error(errno, fmt::format("cannot make {} of {}", file.native(), node_));
}

}  // namespace yoke::lab
