#include "yoke/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/log.h"

namespace yoke {
namespace fs = std::filesystem;

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

UniqueFd open_file(const fs::path& file, int flags, mode_t mode) {
  UniqueFd fd(open(file.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) throw system_error(errno, fmt::format("cannot open {}", file.native()));
  return fd;
}

UniqueFd open_regular_file(const fs::path& file) {
  UniqueFd fd = open_file(file, O_RDONLY | O_NONBLOCK);  // to open a named pipe takes until somebody writes to it
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) throw system_error(errno, fmt::format("cannot look at {}", file.native()));
  if (!S_ISREG(status.st_mode)) throw Error(ErrorCode::kInvalid, fmt::format("{} is no regular file", file.native()));
  return fd;
}

std::size_t read_some(const UniqueFd& fd, void* buffer, std::size_t size, const fs::path& name) {
  // Only a signal that comes now: what cleans up after one reads files too.
  const int interrupts = interrupts_received();
  for (;;) {
    const ssize_t count = read(fd.get(), buffer, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw system_error(errno, fmt::format("cannot read {}", name.native()));
    if (interrupts_received() != interrupts) throw_if_interrupted();
  }
}

void wait_for_input(const UniqueFd& fd) {
  constexpr int kLookEveryMs = 100;  // a signal may come just before a wait begins
  for (;;) {
    throw_if_interrupted();
    pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kLookEveryMs) > 0) return;
  }
}

void write_all(const UniqueFd& fd, std::string_view content, const fs::path& name) {
  while (!content.empty()) {
    const ssize_t count = write(fd.get(), content.data(), content.size());
    if (count >= 0) {
      content.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      throw system_error(errno, fmt::format("cannot write {}", name.native()));
    }
  }
}

namespace {

// Whether a pipe is a shell's <(…) or |, which has a writer already, and not one that lies in a folder.
bool has_writer(const UniqueFd& pipe) {
  struct statfs system {};
  return fstatfs(pipe.get(), &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

}  // namespace

std::string read_file(const fs::path& file, Bytes limit) {
  // Without waiting: to open a named pipe takes until somebody writes to it, which may be never.
  const UniqueFd fd = open_file(file, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) throw system_error(errno, fmt::format("cannot look at {}", file.native()));
  if (S_ISDIR(status.st_mode))
    throw Error(ErrorCode::kInvalid, fmt::format("{} is a folder, not a file", file.native()));
  if (S_ISFIFO(status.st_mode) && !has_writer(fd)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is a named pipe, not a file", file.native()));
  }
  fcntl(fd.get(), F_SETFL, 0);  // what a shell's <(…) has to say is waited for
  std::string content;
  // Else a large file takes three times its size while the text grows.
  if (S_ISREG(status.st_mode))
    content.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(status.st_size, 0, limit.value)));
  char buffer[1 << 16];
  for (;;) {
    if (!S_ISREG(status.st_mode)) wait_for_input(fd);
    const std::size_t count = read_some(fd, buffer, sizeof buffer, file);
    if (count == 0) break;
    content.append(buffer, count);
    if (static_cast<std::int64_t>(content.size()) > limit.value) {
      throw Error(ErrorCode::kInvalid, fmt::format("{} is larger than {}", file.native(), to_string(limit)));
    }
  }
  log(LogLevel::kDebug, "read {} ({} bytes)", file.native(), content.size());
  return content;
}

namespace {

std::string hint_where_forbidden(int error_number) {
  const bool forbidden = error_number == EACCES || error_number == EROFS || error_number == EPERM;
  return forbidden ? "choose a folder that you may write to" : "";
}

}  // namespace

void write_file_atomically(const fs::path& file, std::string_view content, WriteOptions options) {
  std::string temporary = fmt::format("{}.XXXXXX", file.native());
  const UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) {
    throw system_error(errno, fmt::format("cannot write {}", file.native()), hint_where_forbidden(errno));
  }
  try {
    write_all(fd, content, file);
    if (fchmod(fd.get(), options.mode) != 0 || fsync(fd.get()) != 0) {
      throw system_error(errno, fmt::format("cannot write {}", file.native()));
    }
    if (rename(temporary.c_str(), file.c_str()) != 0) {
      throw system_error(errno, fmt::format("cannot replace {}", file.native()));
    }
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  if (options.sync_folder) sync_folder(file.has_parent_path() ? file.parent_path() : ".");
}

void sync_folder(const fs::path& folder) {
  const UniqueFd fd = open_file(folder, O_RDONLY | O_DIRECTORY);
  // Some file systems (of networks, in user space) have no such thing.
  if (fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw system_error(errno, fmt::format("cannot sync the folder {}", folder.native()));
}

namespace {

bool is_folder_at(int parent, const fs::path& folder) {
  struct stat status {};
  return fstatat(parent, folder.c_str(), &status, 0) == 0 && S_ISDIR(status.st_mode);
}

// Opened without following a link, so that what is looked at is what is changed.
UniqueFd open_own_folder(int parent, const fs::path& folder, struct stat& status) {
  UniqueFd fd(openat(parent, folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && fstat(fd.get(), &status) != 0) throw system_error(errno, fmt::format("cannot look at {}", folder.native()));
  const auto us = static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1)));  // as whom this thread makes files
  if (!fd || status.st_uid != us) {
    throw Error(ErrorCode::kPermission, fmt::format("{} is not a folder of this user", folder.native()), "remove it");
  }
  return fd;
}

void set_mode(const UniqueFd& folder, const fs::path& name, mode_t mode) {
  if (fchmod(folder.get(), mode) != 0)
    throw system_error(errno, fmt::format("cannot set the mode of the folder {}", name.native()));
}

// False where there is one already. Closed to others until it has its mode.
bool make_one_folder(int parent, const fs::path& folder, mode_t mode) {
  if (mkdirat(parent, folder.c_str(), mode & S_IRWXU) != 0) {
    if (errno == EEXIST && is_folder_at(parent, folder)) return false;
    throw system_error(errno == EEXIST ? ENOTDIR : errno, fmt::format("cannot make the folder {}", folder.native()),
                       hint_where_forbidden(errno));
  }
  struct stat status {};
  const UniqueFd fd = open_own_folder(parent, folder, status);
  const mode_t wanted = mode | (status.st_mode & S_ISGID);  // as the folder above passes it on
  if ((status.st_mode & 07777) != wanted) set_mode(fd, folder, wanted);
  return true;
}

}  // namespace

void make_folder(const fs::path& folder, mode_t mode) {
  if (folder.empty() || is_folder_at(AT_FDCWD, folder)) return;
  if (!folder.has_filename()) return make_folder(folder.parent_path(), mode);  // "a/"
  make_folder(folder.parent_path(), mode);
  make_one_folder(AT_FDCWD, folder, mode);
}

void make_folder_at(const UniqueFd& parent, const std::string& name, mode_t mode) {
  make_one_folder(parent.get(), name, mode);
}

void make_private_folder(const fs::path& folder) {
  make_folder(folder, S_IRWXU);
  struct stat status {};
  const UniqueFd fd = open_own_folder(AT_FDCWD, folder, status);
  if ((status.st_mode & 07777) != S_IRWXU) set_mode(fd, folder, S_IRWXU);
}

namespace {

fs::path private_folder(const fs::path& folder) {
  make_private_folder(folder);
  return folder;
}

bool is_ours(const fs::path& folder) {
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

// Anybody may make folders in /tmp, but none that belongs to us: so ours is told by its owner, whatever its end.
fs::path own_folder_in_tmp(uid_t user) {
  const fs::path usual = fmt::format("/tmp/yoke-{}", user);
  struct stat status {};
  if (is_ours(usual) || lstat(usual.c_str(), &status) != 0) return private_folder(usual);
  const std::string prefix = usual.filename().native() + "-";
  fs::path first;
  std::error_code failure;
  for (fs::directory_iterator entry("/tmp", failure), end; !failure && entry != end; entry.increment(failure)) {
    const fs::path& found = entry->path();
    if (found.filename().native().starts_with(prefix) && is_ours(found) && (first.empty() || found < first))
      first = found;
  }
  if (!first.empty()) return private_folder(first);
  ScratchDir made(usual.filename().native(), "/tmp");
  fs::path folder = made.path();
  made.release();
  return folder;
}

std::optional<fs::path> absolute_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value || *value != '/') return std::nullopt;  // the XDG rules: a relative path is ignored
  return fs::path(value);
}

}  // namespace

fs::path user_data_dir() {
  if (const auto data = absolute_from("XDG_DATA_HOME")) return private_folder(*data / "yoke");
  if (const auto home = absolute_from("HOME")) return private_folder(*home / ".local/share/yoke");
  throw Error(ErrorCode::kNotFound, "there is no place for yoke's data: neither HOME nor XDG_DATA_HOME is set",
              "set HOME");
}

fs::path user_runtime_dir() { return user_runtime_dir(geteuid()); }

fs::path user_runtime_dir(uid_t user) {
  // Another user's, as sudo may leave it, is not for us: what we made there would keep that user out.
  if (const auto runtime = absolute_from("XDG_RUNTIME_DIR"); runtime && is_ours(*runtime))
    return private_folder(*runtime / "yoke");
  if (user == 0) return private_folder("/run/yoke");
  const fs::path session = fmt::format("/run/user/{}", user);
  return is_ours(session) ? private_folder(session / "yoke") : own_folder_in_tmp(user);
}

std::vector<fs::path> places_beside_program(const std::string& folder) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> places;
  for (const char* way : {"..", "../..", "../share/yoke"})
    places.push_back((program / way / folder).lexically_normal());
  return places;
}

}  // namespace yoke
