// A file as it was: whether it is there, its bytes (kept beside, by their hash), mode and owner. So that undo restores
// it byte for byte, whatever the bytes are.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"

namespace yoke {

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

// With `saved` the bytes are kept.
FileState look_at_file(const std::filesystem::path& file, const SavedBytes* saved = nullptr);
void restore_file(const std::filesystem::path& file, const FileState& state, const SavedBytes& saved);

struct FileOwner {
  int uid = 0, gid = 0;
};
// Written beside with its mode and owner, synced, renamed over: no moment shows half of it, or somebody else's.
void write_owned_file(const std::filesystem::path& file, const std::string& content, int mode, FileOwner owner);
// Makes what is missing above a file, each folder owned by `owner` and of the mode.
void make_folders(const FileState& state, int mode, FileOwner owner);

Document to_json(const FileState& state);
FileState file_state_from_json(const Document& document);

}  // namespace yoke
