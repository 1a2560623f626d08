#include "yoke/lab/plain_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>
#include <set>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/held_process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/plain.h"

namespace yoke::lab {
using namespace literals;
namespace {

// What /proc says of a process that may have gone, or be another user's.
std::string read_or_nothing(const std::string& pid, const char* file) {
  const auto text = try_to([&] { return DiskTree().read(fmt::format("/proc/{}/{}", pid, file)); });
  return text ? text->value_or("") : "";
}

// "4711 (a name) S 1 …": the parent follows the state; the name may hold anything.
pid_t parent_of(const std::string& pid) {
  const std::string text = read_or_nothing(pid, "stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return 0;
  return std::atoi(text.c_str() + name_end + 4);
}

// What marks the processes of a lab, or of one node. A token is a secret of the node's: nobody else can carry it.
struct Marks {
  std::vector<std::string> entries;  // of the environment
  std::set<pid_t> parts;             // the nodes' own processes

  bool are_on(const std::string& pid) const {
    const std::vector<std::string> environment = split(read_or_nothing(pid, "environ"), '\0');
    return std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) {
      return std::find(environment.begin(), environment.end(), entry) != environment.end();
    });
  }
};

Marks marks_of(const std::string& lab, std::optional<int> node) {
  Marks marks;
  for (int number = node.value_or(1); number <= node.value_or(kMaxLabNodes); ++number) {
    const std::string token = plain_token(lab, number);
    if (!token.empty()) marks.entries.push_back(fmt::format("{}={}", kPlainTokenVariable, token));
    if (const auto part = find_part(lab, number)) marks.parts.insert(part->pid());
  }
  return marks;
}

std::set<pid_t> find(const std::string& lab, std::optional<int> node) {
  const Marks marks = marks_of(lab, node);
  std::map<pid_t, pid_t> parents;
  std::set<pid_t> found = marks.parts;
  for (const std::string& entry : DiskTree().list("/proc")) {
    pid_t pid = 0;
    const auto [rest, failure] = std::from_chars(entry.data(), entry.data() + entry.size(), pid);
    if (failure != std::errc{} || rest != entry.data() + entry.size()) continue;
    parents[pid] = parent_of(entry);
    if (marks.are_on(entry)) found.insert(pid);
  }
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (const auto& [pid, parent] : parents) {
      if (found.contains(parent)) found.insert(pid);
    }
  }
  for (pid_t ours = getpid(); ours > 1; ours = parents[ours]) found.erase(ours);
  return found;
}

}  // namespace

void end_plain_processes(const std::string& lab, std::optional<int> node) {
  const Deadline deadline = Deadline::after(10_s);
  for (;;) {
    std::map<pid_t, HeldProcess> held;
    for (const pid_t pid : find(lab, node)) {
      const std::optional<ProcessId> process = living_process(pid);  // a zombie is no process any more
      auto open = process ? HeldProcess::open(*process) : std::nullopt;
      if (open) held.emplace(pid, std::move(*open));
    }
    if (held.empty()) return;
    // A second look, for numbers that have come to mean another process. All are stopped before one is killed: none
    // can start another, or lose its parent and with it our trace, in between.
    const std::set<pid_t> second_look = find(lab, node);
    std::erase_if(held, [&](const auto& entry) { return !second_look.contains(entry.first); });
    for (const int signal_number : {SIGSTOP, SIGKILL}) {
      // One that is not ours to signal, as what sudo started, is waited for all the same.
      for (const auto& [pid, process] : held) (void)try_to([&] { process.send(signal_number); });
    }
    for (const auto& [pid, process] : held) process.wait_until_ended(deadline);
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, fmt::format("processes of lab '{}' do not end", lab));
  }
}

}  // namespace yoke::lab
