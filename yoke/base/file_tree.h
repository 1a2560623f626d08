// The files that describe a machine (/sys, /proc, /etc), readable from anywhere: the running system, a folder that
// holds a capture, or memory. A path is always written as on the machine ("/sys/class/net"); symbolic links, absolute
// ones too, stay inside the tree.
//
// Absent is a value (nothing), broken is an Error that names the file: a sysfs entry that answers EINVAL is absent.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

class FileTree {
 public:
  virtual ~FileTree() = default;
  virtual std::optional<std::string> read(std::string_view path) const = 0;     // the content, untouched
  virtual std::vector<std::string> list(std::string_view path) const = 0;       // sorted names; empty when absent
  virtual std::optional<std::string> link(std::string_view path) const = 0;     // a symbolic link's own target
  virtual std::optional<std::string> resolve(std::string_view path) const = 0;  // the path with every link followed
  virtual bool exists(std::string_view path) const = 0;                         // a file or a folder, links followed

  // The content without surrounding white space, as nearly every sysfs file wants it.
  std::optional<std::string> read_trimmed(std::string_view path) const;
};

// A folder as the machine's root; "/" is this machine.
class DiskTree : public FileTree {
 public:
  explicit DiskTree(std::filesystem::path root = "/") : root_(std::move(root)) {}
  std::optional<std::string> read(std::string_view path) const override;
  std::vector<std::string> list(std::string_view path) const override;
  std::optional<std::string> link(std::string_view path) const override;
  std::optional<std::string> resolve(std::string_view path) const override;
  bool exists(std::string_view path) const override;

 private:
  std::optional<std::filesystem::path> on_disk(std::string_view path) const;
  std::filesystem::path root_;
};

// A tree in memory, for tests and for the hardware that a lab shows.
class MemoryTree : public FileTree {
 public:
  void add_file(std::string_view path, std::string content);
  void add_link(std::string_view path, std::string target);
  void remove(std::string_view path);  // with everything below

  std::optional<std::string> read(std::string_view path) const override;
  std::vector<std::string> list(std::string_view path) const override;
  std::optional<std::string> link(std::string_view path) const override;
  std::optional<std::string> resolve(std::string_view path) const override;
  bool exists(std::string_view path) const override;

  struct Entry {
    enum class Kind { kFile, kLink } kind;
    std::string content;  // or the link's target
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }  // by normal absolute path

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace yoke
