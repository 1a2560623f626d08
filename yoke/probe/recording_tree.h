// A file tree that keeps what was asked of it, so that a capture holds exactly what the collectors look at, and a
// replay answers what the machine did.
//
//   RecordingTree files(DiskTree("/"));
//   probe_machine({.files = &files, …});
//   print_tree(files.recorded());
#pragma once
#include <map>
#include <set>
#include <string>

#include "yoke/base/file_tree.h"

namespace yoke::probe {

class RecordingTree : public FileTree {
 public:
  explicit RecordingTree(const FileTree& inner) : inner_(inner) {}

  std::optional<std::string> read(std::string_view path) const override;
  std::vector<std::string> list(std::string_view path) const override;
  std::optional<std::string> link(std::string_view path) const override;
  std::optional<std::string> resolve(std::string_view path) const override;
  bool exists(std::string_view path) const override;

  // Serial numbers are left out, and of files that may hold secrets all that the probe does not use.
  MemoryTree recorded() const;

 private:
  std::string follow(std::string_view path) const;  // records the links on the way

  const FileTree& inner_;
  mutable std::map<std::string, std::string> files_;  // by the path without links
  mutable std::map<std::string, std::string> links_;
  mutable std::set<std::string> seen_;  // was there when asked for, or was listed
};

}  // namespace yoke::probe
