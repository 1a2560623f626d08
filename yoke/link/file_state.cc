#include "yoke/link/file_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"

namespace yoke::link {
namespace fs = std::filesystem;

template <class Visitor>
void visit_fields(Visitor& visit, FileState& state) {
  visit.required("exists", state.exists);
  visit.optional("sha256", state.sha256);
  visit.optional("mode", state.mode);
  visit.optional("uid", state.uid);
  visit.optional("gid", state.gid);
  visit.optional("missing_folders", state.missing_folders);
}

namespace {

std::vector<std::string> folders_missing_above(const fs::path& file) {
  std::vector<std::string> missing;
  for (fs::path folder = file.parent_path(); !folder.empty() && !fs::exists(folder); folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  std::reverse(missing.begin(), missing.end());
  return missing;
}

// The rights of this thread on files, for a while. The kernel takes root's capabilities over files with them.
class ActingAs {
 public:
  explicit ActingAs(FileOwner owner) : active_(geteuid() == 0 && owner.uid != 0) {
    if (!active_) return;
    setfsgid(static_cast<gid_t>(owner.gid));
    setfsuid(static_cast<uid_t>(owner.uid));
    // Both tell the one before, and nothing of success.
    if (setfsuid(static_cast<uid_t>(-1)) == owner.uid && setfsgid(static_cast<gid_t>(-1)) == owner.gid) return;
    end();
    throw Error(ErrorCode::kPermission, fmt::format("cannot act as the user {}", owner.uid));
  }
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
  ~ActingAs() {
    if (active_) end();
  }

 private:
  static void end() {
    setfsuid(geteuid());
    setfsgid(getegid());
  }

  bool active_;
};

// Unlike rename(), link() replaces nothing.
void place_new(const fs::path& beside, const fs::path& file) {
  if (::link(beside.c_str(), file.c_str()) != 0) {
    if (errno == EEXIST)
      throw Error(ErrorCode::kConflict, fmt::format("{} is there already", file.native()), "somebody has just made it");
    throw system_error(errno, fmt::format("cannot write {}", file.native()));
  }
  fs::remove(beside);
}

fs::path unfinished_name(const fs::path& file) {
  return file.parent_path() / fmt::format(".{}.yoke-new", file.filename().native());
}

}  // namespace

void SavedBytes::keep(const std::string& bytes) const {
  make_private_folder(folder_);
  sync_folder(folder_.parent_path());
  write_file_atomically(folder_ / sha256_hex(bytes), bytes, {.mode = 0600, .sync_folder = true});
}

std::string SavedBytes::get(const std::string& sha256) const {
  std::string bytes = read_file(folder_ / sha256);
  if (sha256_hex(bytes) != sha256) {
    throw Error(ErrorCode::kInvalid, fmt::format("the saved bytes in {} are damaged", (folder_ / sha256).native()));
  }
  return bytes;
}

FileState inspect_file(const fs::path& file, const SavedBytes* saved, FileOwner acting) {
  FileState state{.missing_folders = folders_missing_above(file)};
  struct stat found {};
  std::string bytes;
  {
    const ActingAs as(acting);
    if (stat(file.c_str(), &found) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return state;
      throw system_error(errno, fmt::format("cannot look at {}", file.native()));
    }
    bytes = read_file(file);
  }
  if (saved) saved->keep(bytes);
  state.exists = true;
  state.sha256 = sha256_hex(bytes);
  state.mode = static_cast<int>(found.st_mode & 07777U);
  state.uid = static_cast<int>(found.st_uid);
  state.gid = static_cast<int>(found.st_gid);
  return state;
}

std::string read_if_there(const fs::path& file, FileOwner acting) {
  const ActingAs as(acting);
  return fs::exists(file) ? read_file(file) : "";
}

void write_owned_file(const fs::path& file, const std::string& content, int mode, FileOwner owner, FileOwner acting,
                      Existing existing) {
  remove_unfinished(file, acting);
  const ActingAs as(acting);
  const fs::path beside = unfinished_name(file);
  try {
    const UniqueFd fd = open_file(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    write_all(fd, content, beside);
    if (fchown(fd.get(), static_cast<uid_t>(owner.uid), static_cast<gid_t>(owner.gid)) != 0 ||
        fchmod(fd.get(), static_cast<mode_t>(mode)) != 0 || fsync(fd.get()) != 0) {
      throw system_error(errno, fmt::format("cannot write {}", beside.native()));
    }
    if (existing == Existing::kIsReplaced) {
      fs::rename(beside, file);
    } else {
      place_new(beside, file);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw;
  }
  sync_folder(file.parent_path());
}

void remove_unfinished(const fs::path& file, FileOwner acting) {
  const ActingAs as(acting);
  const fs::path beside = unfinished_name(file);
  if (unlink(beside.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
    throw system_error(errno, fmt::format("cannot remove {}", beside.native()));
}

void make_folders(const FileState& state, int mode, FileOwner owner) {
  const ActingAs as(owner);
  for (const std::string& folder : state.missing_folders) {
    make_folder(folder, static_cast<mode_t>(mode));
    if (chown(folder.c_str(), static_cast<uid_t>(owner.uid), static_cast<gid_t>(owner.gid)) != 0) {
      throw system_error(errno, fmt::format("cannot give the folder {} its owner", folder));
    }
  }
}

void restore_file(const fs::path& file, const FileState& state, const SavedBytes& saved, FileOwner acting) {
  remove_unfinished(file, acting);
  if (state.exists) {
    if (inspect_file(file, nullptr, acting) == state) return;
    write_owned_file(file, saved.get(state.sha256), state.mode, {state.uid, state.gid}, acting);
    return;
  }
  const ActingAs as(acting);
  std::error_code failure;
  fs::remove(file, failure);
  if (failure)
    throw Error(ErrorCode::kPermission, fmt::format("cannot remove {}: {}", file.native(), failure.message()));
  remove_made_folders(state.missing_folders);
}

void remove_made_folders(const std::vector<std::string>& folders) {
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (rmdir(folder->c_str()) != 0 && errno != ENOENT) break;
  }
}

Document to_json(const FileState& state) { return write_fields(state); }
void from_json(const Document& document, FileState& state) { read_fields(document, state); }

}  // namespace yoke::link
