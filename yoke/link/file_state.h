// A file as it was: whether it is there, its bytes (kept beside, by their hash), mode and owner. So that undo restores
// it byte for byte, whatever the bytes are.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::link {

struct FileState {
  bool exists = false;
  std::string sha256;
  int mode = 0;
  int uid = 0, gid = 0;
  std::vector<std::string> missing_folders;  // above it, outermost first: made with it, removed with it
  friend bool operator==(const FileState&, const FileState&) = default;
};

// Where the bytes of earlier states are kept, named by their hash. Private to root.
class SavedBytes {
 public:
  explicit SavedBytes(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void keep(const std::string& bytes) const;
  std::string get(const std::string& sha256) const;  // throws where they are missing or damaged

 private:
  std::filesystem::path folder_;
};

struct FileOwner {
  int uid = 0, gid = 0;
};

// `acting` is with whose rights files are read, written and removed. In a user's home that is the user, also where we
// are root: a link there cannot lead root to a file that the user could not use, whenever it is put there.

// With `saved` the bytes are kept.
FileState inspect_file(const std::filesystem::path& file, const SavedBytes* saved = nullptr, FileOwner acting = {});
std::string read_if_there(const std::filesystem::path& file, FileOwner acting);  // empty where there is none
void restore_file(const std::filesystem::path& file, const FileState& state, const SavedBytes& saved, FileOwner acting);

enum class Existing { kIsReplaced, kStays };
// Written beside with its mode and owner, synced, renamed over: no moment shows half of it, or somebody else's. With
// kStays a file that is there by then is an Error, and is not touched.
void write_owned_file(const std::filesystem::path& file, const std::string& content, int mode, FileOwner owner,
                      FileOwner acting, Existing existing = Existing::kIsReplaced);
// What a killed write_owned_file() left beside the file. Its name is known, so that undo finds it.
void remove_unfinished(const std::filesystem::path& file, FileOwner acting);
// Makes what is missing above a file, each folder owned by `owner` and of the mode.
void make_folders(const FileState& state, int mode, FileOwner owner);

// Those that are there and empty, innermost first; one in which somebody has put something stays, with those above it.
// A killed process may have made only the outer ones.
void remove_made_folders(const std::vector<std::string>& folders);

Document to_json(const FileState& state);
void from_json(const Document& document, FileState& state);

}  // namespace yoke::link
