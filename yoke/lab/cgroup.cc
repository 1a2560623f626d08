#include "yoke/lab/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/text.h"
#include "yoke/lab/state.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;
namespace {

void write_value(const fs::path& file, std::string_view value) { write_all(open_file(file, O_WRONLY), value, file); }

bool has_word(const std::optional<std::string>& text, std::string_view word) {
  if (!text) return false;
  const std::vector<std::string> words = split(trim(*text), ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Where a mount of this kind lies: /proc/mounts has "device folder type options …".
std::optional<fs::path> find_mount(std::string_view type, std::string_view option) {
  for (const std::string& line : split(DiskTree().read("/proc/mounts").value_or(""), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 4 || words[2] != type) continue;
    const std::vector<std::string> options = split(words[3], ',');
    if (option.empty() || std::find(options.begin(), options.end(), option) != options.end()) return words[1];
  }
  return std::nullopt;
}

// This process's own group in the v1 hierarchy of the memory controller: "4:memory:/user.slice".
std::string own_v1_group() {
  for (const std::string& line : split(DiskTree().read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() == 3 && parts[1] == "memory") return parts[2];
  }
  return "/";
}

// The folder below which a lab's groups are made. In v2 that is the root, because a group with processes in it may
// have no children that limit memory; in v1 our own group, the root often being closed to containers.
std::optional<MemoryGroup> base_group() {
  const DiskTree tree;
  if (const auto mount = find_mount("cgroup2", "");
      mount && has_word(tree.read((*mount / "cgroup.controllers").native()), "memory")) {
    return MemoryGroup{*mount, MemoryGroup::Version::kV2};
  }
  if (const auto mount = find_mount("cgroup", "memory")) {
    const fs::path own = mount->native() + own_v1_group();
    return MemoryGroup{fs::is_directory(own) ? own : *mount, MemoryGroup::Version::kV1};
  }
  return std::nullopt;
}

// The lab's groups stay where its first was made, no matter who asks later: in v1 our own group differs from session to
// session, and within a node it is the node's.
fs::path base_file(const std::string& lab) { return lab_folder(lab) / "cgroup"; }

std::optional<MemoryGroup> base_group_of(const std::string& lab) {
  const auto recorded = DiskTree().read_trimmed(base_file(lab).native());
  if (!recorded) return base_group();
  const bool v2 = fs::exists(fs::path(*recorded) / "cgroup.controllers");
  return MemoryGroup{*recorded, v2 ? MemoryGroup::Version::kV2 : MemoryGroup::Version::kV1};
}

std::string group_prefix(const std::string& lab) { return fmt::format("yoke-lab-{}-node-", lab); }

// With the groups inside it, which a killed program of the node left (`yoke launch guard` makes one). False: something
// is still in use.
bool remove_group(const fs::path& folder) {
  for (const std::string& name : DiskTree().list(folder.native())) {
    if (fs::is_directory(folder / name) && !remove_group(folder / name)) return false;
  }
  return rmdir(folder.c_str()) == 0 || errno != EBUSY;
}

}  // namespace

fs::path MemoryGroup::usage_file() const {
  return folder / (version == Version::kV2 ? "memory.current" : "memory.usage_in_bytes");
}

void MemoryGroup::join() const { write_value(folder / "cgroup.procs", fmt::format("{}", getpid())); }

std::optional<MemoryGroup> memory_group(const std::string& lab, int node) {
  auto group = base_group_of(lab);
  if (!group || access(group->folder.c_str(), W_OK) != 0) return std::nullopt;
  group->folder /= fmt::format("{}{}", group_prefix(lab), node);
  return group;
}

void create_memory_group(const std::string& lab, const MemoryGroup& group, Bytes limit) {
  write_file_atomically(base_file(lab), group.folder.parent_path().native() + "\n");
  const bool v2 = group.version == MemoryGroup::Version::kV2;
  if (v2) {
    const fs::path control = group.folder.parent_path() / "cgroup.subtree_control";
    if (!has_word(DiskTree().read(control.native()), "memory")) write_value(control, "+memory");
  }
  make_folder(group.folder);
  write_value(group.folder / (v2 ? "memory.max" : "memory.limit_in_bytes"), fmt::format("{}", limit.value));
  // Swapping would let a node hold more than it has; where swap is not accounted, the file is missing.
  const fs::path swap = group.folder / (v2 ? "memory.swap.max" : "memory.swappiness");
  if (fs::exists(swap)) write_value(swap, "0");
}

void remove_memory_groups(const std::string& lab) {
  const auto base = base_group_of(lab);
  if (!base) return;
  const std::string prefix = group_prefix(lab);
  const DiskTree tree;
  for (const std::string& name : tree.list(base->folder.native())) {
    if (!name.starts_with(prefix) || name.find_first_not_of("0123456789", prefix.size()) != std::string::npos) continue;
    const fs::path folder = base->folder / name;
    // The kernel needs a moment after the last process of a group.
    const Deadline deadline = Deadline::after(5_s);
    while (!remove_group(folder) && !deadline.expired()) real_clock().sleep(10_ms);
    if (fs::exists(folder))
      throw Error(ErrorCode::kConflict, fmt::format("the group {} is still in use", folder.native()));
  }
}

}  // namespace yoke::lab
