#include "yoke/job/process_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/base/held_process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::job {
namespace fs = std::filesystem;
using namespace literals;
namespace {

// Another user's processes are looked at by root only. So much of each: many with a large environment must not slow
// every look.
constexpr std::size_t kMaxOthers = 64 << 10;

// Empty where it has gone, or is not ours to look at. Neither is an error here.
std::string read_kernel_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string content;
  char buffer[1 << 14];
  struct stat status {};
  const bool is_ours = fd && fstat(fd.get(), &status) == 0 && status.st_uid == geteuid();
  // The kernel's limit for arguments and environment is 2 MiB by default.
  const std::size_t most = is_ours ? 4 << 20 : kMaxOthers;
  while (fd && content.size() < most) {
    const ssize_t count = read(fd.get(), buffer, sizeof buffer);
    if (count <= 0) break;
    content.append(buffer, static_cast<std::size_t>(count));
  }
  return content;
}

// "12 (name) T 1 …": the name may hold anything, so the state is found from the last parenthesis.
char state_of(pid_t pid) {
  const std::string stat = read_kernel_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? 'X' : stat[name_end + 2];
}

std::vector<pid_t> numbers_in(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename();
    pid_t number = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc() && rest == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// The value behind "oom_kill " in a file of the kernel's.
std::optional<std::uint64_t> kill_count_in(const std::string& file) {
  const std::string text = "\n" + read_kernel_file(file);
  const std::size_t at = text.find("\noom_kill ");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(text.c_str() + at + 10, nullptr, 10);
}

}  // namespace

bool is_stopped(pid_t root) {
  if (state_of(root) == 'T') return true;
  for (const pid_t thread : numbers_in(fmt::format("/proc/{}/task", root))) {
    const std::string children = read_kernel_file(fmt::format("/proc/{}/task/{}/children", root, thread));
    for (const std::string& child : split(children, ' ')) {
      if (const long pid = std::strtol(child.c_str(), nullptr, 10); pid > 0 && is_stopped(static_cast<pid_t>(pid))) {
        return true;
      }
    }
  }
  return false;
}

std::optional<std::uint64_t> count_out_of_memory_kills() {
  // "0::/user.slice/…" (v2) and "4:memory:/yoke-lab/node-1" (v1). In a container the path may not be visible under
  // /sys/fs/cgroup; its root is then our own group.
  for (const std::string& line : split(read_kernel_file("/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3 || (parts[1] != "memory" && !parts[1].empty())) continue;
    const bool v1 = parts[1] == "memory";
    const std::string base = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const std::string file = v1 ? "/memory.oom_control" : "/memory.events";
    for (const std::string& folder : {base + parts[2], base}) {
      if (const auto count = kill_count_in(folder + file)) return count;
    }
  }
  return kill_count_in("/proc/vmstat");
}

std::vector<ProcessId> find_tagged_processes(const std::string& tag) {
  std::vector<ProcessId> found;
  for (const pid_t pid : numbers_in("/proc")) {
    if (pid == getpid()) continue;
    if (read_kernel_file(fmt::format("/proc/{}/environ", pid)).find(tag) == std::string::npos) continue;
    if (const auto process = living_process(pid)) found.push_back(*process);
  }
  return found;
}

int end_tagged_processes(const std::string& tag, Seconds grace) {
  const Deadline end = Deadline::after(5_s);
  const Deadline patience = Deadline::after(grace);
  std::set<ProcessId> seen;
  // Nothing counts only when it was found twice: what forks between two looks hides its child from one of them.
  for (int empty = 0; empty < 2 && !end.expired();) {
    const std::vector<ProcessId> living = find_tagged_processes(tag);
    empty = living.empty() ? empty + 1 : 0;
    for (const ProcessId& process : living) {
      const bool first = seen.insert(process).second;
      (void)try_to([&] {
        const auto held = HeldProcess::open(process);  // its number may mean another by now
        if (!held) return;
        if (patience.expired()) {
          held->send(SIGKILL);
        } else if (first) {
          held->send(SIGTERM);
          held->send(SIGCONT);
        }
      });
    }
    if (!living.empty()) real_clock().sleep(20_ms);
  }
  return static_cast<int>(seen.size());
}

}  // namespace yoke::job
