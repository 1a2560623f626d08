#include "yoke/base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/files.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

struct ProcessRow {
  ProcessId id;
  pid_t parent = 0;
  pid_t session = 0;
  bool marked = false;
};

// Empty where the process has gone, or is not ours to look at. Neither is an error here.
std::string read_proc(pid_t pid, const char* name) {
  const UniqueFd fd(open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  if (!fd) return content;
  char buffer[1 << 14];
  struct stat status {};
  const bool is_ours = fstat(fd.get(), &status) == 0 && status.st_uid == geteuid();
  // The kernel's limit for arguments and environment is 2 MiB by default. Root reads less of what is other users', so
  // that many of theirs with a large environment do not slow every look.
  const std::size_t most = is_ours ? 4 << 20 : 64 << 10;
  while (content.size() < most) {
    const ssize_t count = read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    content.append(buffer, static_cast<std::size_t>(count));
  }
  return content;
}

// "12 (name) S 1 …": the name may hold anything, so what follows is found from the last parenthesis. proc(5): the state
// is field 3, the parent field 4, the session field 6, the start field 22.
std::optional<ProcessRow> living_row(pid_t pid) {
  const std::string stat = read_proc(pid, "stat");
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(stat).substr(name_end + 2), ' ');
  if (fields.size() < 20 || fields[0] == "Z" || fields[0] == "X") return std::nullopt;
  ProcessRow row;
  row.id.pid = pid;
  row.parent = static_cast<pid_t>(std::strtol(fields[1].c_str(), nullptr, 10));
  row.session = static_cast<pid_t>(std::strtol(fields[3].c_str(), nullptr, 10));
  row.id.started = std::strtoull(fields[19].c_str(), nullptr, 10);
  return row;
}

std::vector<ProcessRow> list_processes(std::string_view token) {
  std::vector<ProcessRow> rows;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return rows;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size() || pid == getpid()) continue;
    std::optional<ProcessRow> row = living_row(pid);
    if (!row) continue;
    row->marked = read_proc(pid, "environ").find(token) != std::string::npos;
    rows.push_back(*row);
  }
  return rows;
}

}  // namespace

std::optional<ProcessId> living_process(pid_t pid) {
  const std::optional<ProcessRow> row = living_row(pid);
  if (!row) return std::nullopt;
  return row->id;
}

std::vector<pid_t> living_children() {
  std::vector<pid_t> children;
  for (const ProcessRow& row : list_processes("")) {
    if (row.parent == getpid()) children.push_back(row.id.pid);
  }
  return children;
}

ProcessTree::ProcessTree(pid_t root, std::string token) : token_(std::move(token)), sessions_{root} {
  if (const auto row = living_row(root)) living_.insert(row->id);
}

// The kernel gives the list of numbers before we look at each: a process that forks and ends in between hides its child
// from that look, but not from the next. So nothing counts only when it was found twice.
void ProcessTree::look() {
  find();
  if (living_.empty()) find();
}

void ProcessTree::find() {
  const std::vector<ProcessRow> rows = list_processes(token_);
  const std::set<ProcessId> before = std::exchange(living_, {});
  std::set<pid_t> pids;
  // A session's number is that of its leader, and free again once all of it has gone. Where the leader lives and is
  // none of ours, the number has come again.
  const auto in_our_session = [&](const ProcessRow& row) {
    return row.id.pid != row.session && sessions_.contains(row.session) &&
           std::none_of(rows.begin(), rows.end(), [&](const ProcessRow& leader) {
             return leader.id.pid == row.session && !before.contains(leader.id) && !living_.contains(leader.id);
           });
  };
  for (bool grew = true; grew;) {  // as often as the tree is deep, which is shallow
    grew = false;
    for (const ProcessRow& row : rows) {
      if (!row.marked && !before.contains(row.id) && !pids.contains(row.parent) && !in_our_session(row)) continue;
      grew |= living_.insert(row.id).second;
      pids.insert(row.id.pid);
      if (row.session != getsid(0)) sessions_.insert(row.session);
    }
  }
}

}  // namespace yoke
