#include "yoke/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"

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
  return content;
}

void write_file_atomically(const fs::path& file, std::string_view content, WriteOptions options) {
  std::string temporary = fmt::format("{}.XXXXXX", file.native());
  const UniqueFd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) throw system_error(errno, fmt::format("cannot write {}", file.native()));
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
}

ScratchDir::ScratchDir(std::string_view prefix, const std::optional<fs::path>& parent) {
  const char* base = std::getenv("TMPDIR");
  const fs::path folder = parent.value_or(base && *base ? base : "/tmp");
  std::string name = fmt::format("{}/{}-XXXXXX", folder.native(), prefix);
  if (!mkdtemp(name.data())) throw system_error(errno, fmt::format("cannot make the scratch folder {}", name));
  path_ = name;
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;  // a leftover scratch folder is no reason to end the program
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

namespace {

fs::path private_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw system_error(failure.value(), fmt::format("cannot make the folder {}", folder.native()));
  fs::permissions(folder, fs::perms::owner_all, failure);
  // Below /tmp somebody else could have made it first.
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) {
    throw Error(ErrorCode::kPermission, fmt::format("{} is not a folder of ours", folder.native()), "remove it");
  }
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

fs::path user_runtime_dir() {
  if (const auto runtime = absolute_from("XDG_RUNTIME_DIR")) {
    std::error_code ignored;
    if (fs::is_directory(*runtime, ignored)) return private_folder(*runtime / "yoke");
  }
  if (geteuid() == 0) return private_folder("/run/yoke");
  return private_folder(fmt::format("/tmp/yoke-{}", geteuid()));
}

}  // namespace yoke
