// A machine's files (/sys, /proc, /etc) as one text, which parses into a MemoryTree: a captured machine is then a diff
// that one can read, not 300 small files, and the program can carry the same text (the lab lays it over a node's /sys).
//
//   # A comment has a line of its own.
//   include ../parts/spark.tree
//   in /sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0
//   vendor = 0x15b3
//   driver -> ../../../../bus/pci/drivers/mlx5_core
//   in net/enp1s0f0np0
//   speed = 200000
//   /proc/swaps <<
//     Filename    Type    Size    Used    Priority
//     /swap.img   file    16777212  0     -2
//   /etc/nvidia/cx7-hotplug-enabled : ""
//   - /sys/class/net/wlan0
//   move /sys/class/infiniband/rocep1s0f0 to /sys/class/infiniband/mlx5_0
//
// NAME = TEXT    a file of one line: the text without surrounding white space, and a newline, as sysfs answers.
// NAME <<        a file of several lines: those that follow with two spaces before them (taken off) and the empty lines
//                between them. It ends with a newline.
// NAME : "TEXT"  a file with exactly this content; \" \\ \n \t \xHH inside.
// NAME -> TARGET a symbolic link.
// - NAME         removes what is there, with everything below; nothing there is an error, so that a variant that has
//                lost its base is noticed. `move NAME to NAME` likewise.
// in FOLDER      names that do not begin with "/" lie in this folder. A relative FOLDER lies in the last absolute one.
// include FILE   reads another file here, relative to this one. It begins in the folder in force, so that a part
//                written with relative names can be used for several devices; its own `in` does not leak out.
//
// A later line replaces what an included file said; twice the same name in one file is an error. A name with white
// space in it, or that is one of the words above, stands in quotes. Folders are there when something lies in them.
// There is no "..", and nothing below a file or a link. Variables and loops were left out: parts and `in` suffice.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "yoke/base/file_tree.h"

namespace yoke {

// What is beyond these is refused: a tree file may come from a stranger.
struct TreeFileLimits {
  static constexpr std::size_t kMaxText = 64 << 20;  // with all that is included, each time
  static constexpr std::size_t kMaxEntries = 50'000;
  static constexpr std::size_t kMaxPath = 1024;  // as lengths in bytes
  static constexpr std::size_t kMaxName = 255;
  static constexpr std::size_t kIncludesDeep = 8;
  static constexpr std::size_t kMaxIncludes = 10'000;  // each time one is read; the largest fixture has 20
};

// Answers the text of an included file. It is asked by the path from where `name` starts, in normal form: "a/b.tree"
// that includes "../c.tree" asks for "c.tree". An Error that it throws is reported with the line of the include. None
// at all means that nothing can be included.
using ReadInclude = std::function<std::string(std::string_view path)>;

// `name` is how errors call the text ("spark.tree:12: …") and what includes are relative to. Throws Error kInvalid.
MemoryTree parse_tree(std::string_view text, std::string_view name, const ReadInclude& read_include);
// Included files must lie in the file's own folder or below: a capture may come from a stranger. Those of the tests
// share parts; they name the folder of all in the environment, as YOKE_CAPTURE_PARTS.
MemoryTree load_tree(const std::filesystem::path& file);

// Without includes; parses back to the same tree. Refuses (as does write_tree) what no disk could hold, such as a file
// with another below it.
std::string print_tree(const MemoryTree& tree);

// Lays the tree out as real files and links under a folder, which must be empty or not there yet. No link written leads
// out of the folder: absolute targets become relative ones to the same place, and what has ".." beyond the root or
// after a name is refused.
void write_tree(const MemoryTree& tree, const std::filesystem::path& folder);

}  // namespace yoke
