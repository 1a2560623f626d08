// How a node's hardware tree follows its network interfaces: the state, rate, GIDs and counters of every RDMA port, and
// the faults that are laid on top. Pure: what is in the tree, the interfaces and the faults in; the files to write and
// to remove out. Nothing is remembered besides the tree, so that a watcher may die and another go on.
//
//   apply_changes(hardware_changes(DiskTree(root), read_interfaces(), faults), root);
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/file_tree.h"
#include "yoke/base/ip.h"
#include "yoke/lab/gid_table.h"
#include "yoke/lab/hardware_faults.h"

namespace yoke::lab {

struct InterfaceCounters {
  std::uint64_t rx_bytes = 0, tx_bytes = 0;
  std::uint64_t rx_packets = 0, tx_packets = 0;
  std::uint64_t rx_errors = 0, tx_dropped = 0;
  friend bool operator==(const InterfaceCounters&, const InterfaceCounters&) = default;
};

struct InterfaceState {
  std::string name;
  std::optional<Mac> mac;  // absent where the interface has none of six bytes
  bool up = false;         // as the administrator wants it
  bool carrier = false;
  std::vector<Ipv4> ipv4;  // in the kernel's order
  std::vector<Gid> ipv6;
  std::optional<InterfaceCounters> counters;  // absent: the tree's are left alone
  friend bool operator==(const InterfaceState&, const InterfaceState&) = default;
};

struct FileChange {
  std::string path;                    // as on the machine, free of links
  std::optional<std::string> content;  // absent: the file goes
  friend bool operator==(const FileChange&, const FileChange&) = default;
};

// Only what differs, in an order in which a reader in between never sees a GID without its attributes. A port whose
// interface is missing is down. Faults that name what is not there do nothing: see check_hardware_faults().
std::vector<FileChange> hardware_changes(const FileTree& tree, const std::vector<InterfaceState>& interfaces,
                                         const HardwareFaults& faults);

// The part of it that follows from the counters alone. It asks for a tenth of the files, which matters while traffic
// that somebody measures goes on.
std::vector<FileChange> counter_changes(const FileTree& tree, const std::vector<InterfaceState>& interfaces);

void apply_changes(const std::vector<FileChange>& changes, MemoryTree& tree);
// Below a folder that is the machine's root. Files are written in place, as who has one open must see the new content.
void apply_changes(const std::vector<FileChange>& changes, const std::filesystem::path& root);

// Replaces the content of a file that stays the same file (one that is mounted elsewhere, or held open). A reader at
// the same moment may see the new text with the end of a longer old one behind it, never an empty file.
void write_in_place(const std::filesystem::path& file, std::string_view content);

}  // namespace yoke::lab
