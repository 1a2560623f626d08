#include "yoke/lab/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <map>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/lab/keeper.h"
#include "yoke/lab/rights.h"
#include "yoke/spec/cluster_rules.h"

namespace yoke {
namespace fs = std::filesystem;
using namespace literals;

namespace {

// Number 1 in a PID namespace below ours: its status has a line NSpid with two numbers, 4711 and 1.
bool is_first_process(const FileTree& tree, const std::string& pid) {
  const auto status = try_to([&] { return tree.read("/proc/" + pid + "/status"); });
  for (const std::string& line : split(status ? status->value_or("") : "", '\n')) {
    if (line.starts_with("NSpid:")) return std::count(line.begin(), line.end(), '\t') > 1 && line.ends_with("\t1");
  }
  return false;
}

fs::path lock_file(const std::string& name) { return lab_folder(name).native() + ".lock"; }

// By system call: glibc's <sys/pidfd.h> of Debian 12 is not for C++.
UniqueFd open_process(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

bool is_file_at(const UniqueFd& fd, const fs::path& file) {
  struct stat open {};
  struct stat there {};
  return fstat(fd.get(), &open) == 0 && stat(file.c_str(), &there) == 0 && open.st_ino == there.st_ino &&
         open.st_dev == there.st_dev;
}

}  // namespace

fs::path labs_folder() {
  if (geteuid() == 0 && !in_user_namespace()) return "/run/yoke/labs";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (geteuid() != 0 || (runtime && fs::is_directory(runtime))) return user_runtime_dir() / "labs";
  return fmt::format("/tmp/yoke-{}/labs", outer_user());  // what user_runtime_dir() says outside of the namespace
}

fs::path lab_folder(const std::string& name) {
  // Names come from the command line and from cluster files: they must not lead anywhere else.
  if (!is_plain_name(name)) {
    throw Error(ErrorCode::kUsage, fmt::format("'{}' cannot be a lab's name", printable(name, 40)),
                "use letters, digits, '-', '_' and '.', with a letter or digit first");
  }
  return labs_folder() / name;
}

fs::path node_folder(const std::string& lab, int node) { return lab_folder(lab) / fmt::format("node-{}", node); }

std::vector<std::string> list_labs() {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator entry(labs_folder(), failure), end; !failure && entry != end; entry.increment(failure)) {
    if (entry->is_directory()) names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool lab_exists(const std::string& name) { return fs::exists(lab_folder(name)) || !find_lab_processes(name).empty(); }

void save_layout(const LabLayout& layout) {
  write_file_atomically(lab_folder(layout.name) / "lab.json", print_json(to_json(layout)) + "\n", {.mode = 0600});
}

void save_missing(const std::string& name, const std::vector<std::string>& missing) {
  if (!missing.empty())
    write_file_atomically(lab_folder(name) / "missing", fmt::format("{}\n", fmt::join(missing, "\n")));
}

std::vector<std::string> load_missing(const std::string& name) {
  std::vector<std::string> lines = split(DiskTree().read((lab_folder(name) / "missing").native()).value_or(""), '\n');
  std::erase(lines, "");
  return lines;
}

LabLayout load_layout(const std::string& name) {
  const fs::path file = lab_folder(name) / "lab.json";
  if (!fs::exists(file)) {
    const std::vector<std::string> labs = list_labs();
    throw Error(ErrorCode::kNotFound, fmt::format("there is no lab '{}'", name),
                labs.empty() ? "start one with 'yoke lab up'" : suggest(name, labs, "labs"));
  }
  return lab_layout_from_json(parse_json(read_file(file), file.native()));
}

std::string choose_lab(const std::optional<std::string>& name) {
  if (name) return *name;
  const std::vector<std::string> labs = list_labs();
  if (labs.size() == 1) return labs.front();
  if (labs.empty()) throw Error(ErrorCode::kNotFound, "there is no lab", "start one with 'yoke lab up'");
  throw Error(ErrorCode::kUsage, "there are several labs",
              fmt::format("name one with --name: {}", fmt::join(labs, ", ")));
}

LabLock::LabLock(const std::string& name) : name_(name) {
  const fs::path file = lock_file(name);
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const Deadline deadline = Deadline::after(10_s);
  for (;;) {
    fd_ = open_file(file, O_RDWR | O_CREAT, 0600);
    const bool locked = flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
    if (locked && is_file_at(fd_, file)) return;
    if (locked) continue;  // the one before us removed it
    throw_if_interrupted();
    if (deadline.expired()) {
      throw Error(ErrorCode::kConflict, fmt::format("another yoke is changing lab '{}'", name),
                  "try again when it is done");
    }
    real_clock().sleep(20_ms);
  }
}

LabLock::~LabLock() {
  std::error_code ignored;
  if (!fs::exists(lab_folder(name_), ignored)) fs::remove(lock_file(name_), ignored);
}

bool lab_lock_exists(const std::string& name) { return fs::exists(lock_file(name)); }

std::vector<LabProcess> find_lab_processes(const std::string& name) {
  const std::string folder = lab_folder(name).native();
  std::vector<LabProcess> found;
  const DiskTree tree;
  for (const std::string& entry : tree.list("/proc")) {
    pid_t pid = 0;
    const auto [rest, failure] = std::from_chars(entry.data(), entry.data() + entry.size(), pid);
    if (failure != std::errc{} || rest != entry.data() + entry.size()) continue;
    const Result<std::optional<std::string>> line = try_to([&] { return tree.read("/proc/" + entry + "/cmdline"); });
    if (!line || !*line) continue;
    const std::vector<std::string> words = split(**line, '\0');
    if (const auto node = lab_part_of(words, folder)) {
      const bool first = words[1] == kPlainNodeWord || is_first_process(tree, entry);
      found.push_back({.pid = pid, .node = *node, .first = first});
    }
  }
  return found;
}

std::optional<pid_t> find_keeper(const std::string& name) {
  for (const LabProcess& process : find_lab_processes(name)) {
    if (process.node == 0) return process.pid;
  }
  return std::nullopt;
}

std::optional<pid_t> find_node_init(const std::string& name, int node) {
  for (const LabProcess& process : find_lab_processes(name)) {
    if (process.node == node && process.first) return process.pid;
  }
  return std::nullopt;
}

void end_lab_processes(const std::string& name, std::optional<int> node) {
  const Deadline deadline = Deadline::after(10_s);
  for (;;) {
    // A descriptor first, then a second look: a number that has come to mean another process is not killed.
    std::map<pid_t, UniqueFd> open;
    for (const LabProcess& process : find_lab_processes(name)) {
      if (!node || process.node == *node) open[process.pid] = open_process(process.pid);
    }
    if (open.empty()) return;
    for (const LabProcess& process : find_lab_processes(name)) {
      if (const auto found = open.find(process.pid); found != open.end() && found->second)
        syscall(SYS_pidfd_send_signal, found->second.get(), SIGKILL, nullptr, 0);
    }
    // Readable at the very end: a node's first process waits in the kernel for the whole node.
    for (const auto& [pid, fd] : open) {
      pollfd waiting{.fd = fd.get(), .events = POLLIN};
      while (fd && poll(&waiting, 1, deadline.poll_timeout_ms(1000)) <= 0 && !deadline.expired()) {
      }
    }
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, fmt::format("processes of lab '{}' do not end", name));
  }
}

fs::path network_namespace(const std::string& name, int node) {
  const std::optional<pid_t> keeper = find_keeper(name);
  if (load_layout(name).plain) {
    throw Error(ErrorCode::kUnsupported, fmt::format("lab '{}' is plain: its nodes have no network of their own", name),
                "only power-off and power-on work there");
  }
  if (!keeper) {
    throw Error(ErrorCode::kUnavailable, fmt::format("lab '{}' has lost its keeper", name),
                fmt::format("'yoke lab down --name {}' and start it again", name));
  }
  join_user_namespace_of(*keeper);
  return fmt::format("/proc/{}/fd/{}", *keeper, kFirstNamespaceFd + node);
}

}  // namespace yoke
