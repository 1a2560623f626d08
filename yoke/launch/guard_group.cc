#include "yoke/launch/guard_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "yoke/base/files.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::launch {
namespace {

namespace fs = std::filesystem;

struct GroupPlace {
  fs::path parent;
  std::string limit_file;
};

// Version 1 nests below our own group. In version 2 a group with processes cannot have limited ones below it: the new
// one stands beside ours, where ours is a unit of systemd (elsewhere it would leave limits that are meant for us).
std::optional<GroupPlace> find_place() {
  const auto groups = try_to([] { return read_file("/proc/self/cgroup", Bytes{1 << 16}); });
  for (const std::string& line : split(groups.value_or(""), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const fs::path own(parts[2]);
    if (parts[1] == "memory") {
      return GroupPlace{fs::path("/sys/fs/cgroup/memory") / own.relative_path(), "memory.limit_in_bytes"};
    }
    const bool unit = own.extension() == ".service" || own.extension() == ".scope";
    if (parts[0] == "0" && unit && fs::exists("/sys/fs/cgroup/cgroup.controllers")) {
      return GroupPlace{(fs::path("/sys/fs/cgroup") / own.relative_path()).parent_path(), "memory.max"};
    }
  }
  return std::nullopt;
}

void write_value(const fs::path& file, const std::string& value) { write_all(open_file(file, O_WRONLY), value, file); }

}  // namespace

GuardGroup::GuardGroup(pid_t process, Bytes limit) {
  const auto place = find_place();
  if (!place) return;
  const fs::path folder = place->parent / fmt::format("yoke-guard-{}", process);
  const auto made = try_to([&] {
    make_folder(folder);
    write_value(folder / place->limit_file, std::to_string(limit.value));
    write_value(folder / "cgroup.procs", std::to_string(process));
  });
  if (made) {
    folder_ = folder;
  } else {
    rmdir(folder.c_str());
  }
}

GuardGroup::~GuardGroup() {
  if (!folder_.empty()) rmdir(folder_.c_str());
}

}  // namespace yoke::launch
