// Files: descriptors that close themselves, whole-file reads with a limit, atomic writes, scratch folders. Reading a
// machine goes through FileTree (file_tree.h) instead, which can be rooted elsewhere.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "yoke/base/units.h"

namespace yoke {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// All throw Error naming the file. Descriptors are close-on-exec.
UniqueFd open_file(const std::filesystem::path& file, int flags, mode_t mode = 0644);
UniqueFd open_regular_file(const std::filesystem::path& file);  // to read; an Error for a folder, pipe or device
std::size_t read_some(const UniqueFd& fd, void* buffer, std::size_t size, const std::filesystem::path& name);
// Until there is something to read, or the end. kInterrupted after a signal: a terminal or a pipe may be silent for
// ever.
void wait_for_input(const UniqueFd& fd);
void write_all(const UniqueFd& fd, std::string_view content, const std::filesystem::path& name);

// The whole content; an Error where it is larger than `limit`, a folder, or a pipe that lies in one.
std::string read_file(const std::filesystem::path& file, Bytes limit = Bytes{64 << 20});

struct WriteOptions {
  mode_t mode = 0644;
  bool sync_folder = false;  // it is there after a power cut, too, and not only whole or not at all
};
// Written beside, synced, then renamed over: readers see the old or the new content, also after a crash.
void write_file_atomically(const std::filesystem::path& file, std::string_view content, WriteOptions options = {});

// What was made, renamed or removed in it survives a power cut.
void sync_folder(const std::filesystem::path& folder);

// Makes a folder, and each missing one above it, with exactly this mode, whatever the umask is. A folder that is there
// already stays as it is. Nothing else makes folders (tests/tidy_test.cc).
void make_folder(const std::filesystem::path& folder, mode_t mode = 0755);
void make_folder_at(const UniqueFd& parent, const std::string& name, mode_t mode = 0755);  // one, below `parent`
// For this user alone: 0700. One that is there already must be this user's own, and is closed to others.
void make_private_folder(const std::filesystem::path& folder);

// A folder of its own under $TMPDIR (else /tmp), or a given parent; removed with all it holds when this goes. It is
// locked (flock) while its process lives, so that what a killed one left is known.
class ScratchDir {
 public:
  explicit ScratchDir(std::string_view prefix = "yoke", const std::optional<std::filesystem::path>& parent = {});
  ScratchDir(ScratchDir&& other) noexcept : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  ScratchDir& operator=(ScratchDir&&) = delete;
  ~ScratchDir();
  const std::filesystem::path& path() const { return path_; }
  void release() { path_.clear(); }  // it stays

  // Removes those of this user's with this prefix whose process has gone, and those that were released.
  static void remove_abandoned(std::string_view prefix, const std::optional<std::filesystem::path>& parent = {});

 private:
  std::filesystem::path path_;
  UniqueFd lock_;
};

// $XDG_DATA_HOME/yoke, or its usual place; made where missing, private to the user.
std::filesystem::path user_data_dir();
// $XDG_RUNTIME_DIR/yoke; where there is none of this user's, /run/yoke for root, else /run/user/UID/yoke, else
// /tmp/yoke-UID, else (where another user has taken that name) /tmp/yoke-UID-XXXXXX. Made where missing, private to the
// user. With `user` for a process that is root in a user namespace of that user's: the same folder as outside of it.
std::filesystem::path user_runtime_dir();
std::filesystem::path user_runtime_dir(uid_t user);

// Where folders of this name that ship with the program may be: beside a build and beside an installed program.
std::vector<std::filesystem::path> places_beside_program(const std::string& folder);

}  // namespace yoke
