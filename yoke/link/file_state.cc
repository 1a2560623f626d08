#include "yoke/link/file_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"

namespace yoke {
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

}  // namespace

void SavedBytes::keep(const std::string& bytes) const {
  make_private_folder(folder_);
  write_file_atomically(folder_ / sha256_hex(bytes), bytes, {.mode = 0600});
}

std::string SavedBytes::get(const std::string& sha256) const {
  std::string bytes = read_file(folder_ / sha256);
  if (sha256_hex(bytes) != sha256) {
    throw Error(ErrorCode::kInvalid, fmt::format("the saved bytes in {} are damaged", (folder_ / sha256).native()));
  }
  return bytes;
}

FileState look_at_file(const fs::path& file, const SavedBytes* saved) {
  FileState state{.missing_folders = folders_missing_above(file)};
  struct stat found {};
  if (stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return state;
    throw system_error(errno, fmt::format("cannot look at {}", file.native()));
  }
  const std::string bytes = read_file(file);
  if (saved) saved->keep(bytes);
  state.exists = true;
  state.sha256 = sha256_hex(bytes);
  state.mode = static_cast<int>(found.st_mode & 07777U);
  state.uid = static_cast<int>(found.st_uid);
  state.gid = static_cast<int>(found.st_gid);
  return state;
}

void write_owned_file(const fs::path& file, const std::string& content, int mode, FileOwner owner) {
  const fs::path beside =
      file.parent_path() / fmt::format(".{}.yoke-{}", file.filename().native(), random_token_hex(4));
  try {
    const UniqueFd fd = open_file(beside, O_WRONLY | O_CREAT | O_EXCL, 0600);
    write_all(fd, content, beside);
    if (fchown(fd.get(), static_cast<uid_t>(owner.uid), static_cast<gid_t>(owner.gid)) != 0 ||
        fchmod(fd.get(), static_cast<mode_t>(mode)) != 0 || fsync(fd.get()) != 0) {
      throw system_error(errno, fmt::format("cannot write {}", beside.native()));
    }
    fs::rename(beside, file);
  } catch (...) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw;
  }
  const UniqueFd folder = open_file(file.parent_path(), O_RDONLY | O_DIRECTORY);
  fsync(folder.get());
}

void make_folders(const FileState& state, int mode, FileOwner owner) {
  for (const std::string& folder : state.missing_folders) {
    make_folder(folder, static_cast<mode_t>(mode));
    if (chown(folder.c_str(), static_cast<uid_t>(owner.uid), static_cast<gid_t>(owner.gid)) != 0) {
      throw system_error(errno, fmt::format("cannot give the folder {} its owner", folder));
    }
  }
}

void restore_file(const fs::path& file, const FileState& state, const SavedBytes& saved) {
  if (state.exists) {
    if (look_at_file(file) == state) return;
    write_owned_file(file, saved.get(state.sha256), state.mode, {state.uid, state.gid});
    return;
  }
  std::error_code failure;
  fs::remove(file, failure);
  if (failure)
    throw Error(ErrorCode::kPermission, fmt::format("cannot remove {}: {}", file.native(), failure.message()));
  // Innermost first. A folder in which somebody else has put something stays.
  for (auto folder = state.missing_folders.rbegin(); folder != state.missing_folders.rend(); ++folder) {
    if (rmdir(folder->c_str()) != 0) break;
  }
}

Document to_json(const FileState& state) { return to_document(state); }
FileState file_state_from_json(const Document& document) { return from_document<FileState>(document); }

}  // namespace yoke
