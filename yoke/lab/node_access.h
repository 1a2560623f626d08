// A running node's files, reached from this machine. Every path is looked up from the descriptor of the node's root and
// stays below it; links in it are refused, since the user who made them could lead us to any file of this machine.
//
//   const NodeAccess access(lab, node);
//   access.write("/run/yoke-lab/hardware-faults.json", text);
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "yoke/base/files.h"
#include "yoke/lab/layout.h"

namespace yoke::lab {

class NodeAccess {
 public:
  NodeAccess(const std::string& lab, const LabNode& node);  // Error(kUnavailable) where it is powered off

  std::optional<std::string> read(const std::filesystem::path& file) const;  // nothing where it is missing
  void write(const std::filesystem::path& file, std::string_view content, WriteOptions options = {}) const;
  void remove(const std::filesystem::path& file) const;  // no error where it is missing
  void make_folders(const std::filesystem::path& folder) const;
  void make_device(const std::filesystem::path& file) const;  // 0:0, which a user namespace may make too

 private:
  UniqueFd open(const std::filesystem::path& file, int flags) const;
  UniqueFd open_folder_of(const std::filesystem::path& file) const;

  std::string node_;
  UniqueFd root_;
};

}  // namespace yoke::lab
