#include "yoke/lab/node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/log.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/base/tree_file.h"
#include "yoke/lab/cgroup.h"
#include "yoke/lab/hardware.h"
#include "yoke/lab/keeper.h"
#include "yoke/lab/node_files.h"
#include "yoke/lab/state.h"
#include "yoke/lab/watcher.h"
#include "yoke/lab/watcher_meminfo.h"

namespace yoke {
namespace fs = std::filesystem;
using namespace literals;
namespace {

void mount_at(const char* source, const fs::path& target, const char* type, unsigned long flags,
              const std::string& data) {
  fs::create_directories(target);
  if (mount(source, target.c_str(), type, flags, data.c_str()) != 0) {
    throw system_error(errno, fmt::format("cannot mount {} at {}", type ? type : source, target.native()));
  }
}

void bind(const fs::path& source, const fs::path& target, unsigned long flags) {
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | flags, nullptr) != 0) {
    throw system_error(errno, fmt::format("cannot bind {} to {}", source.native(), target.native()));
  }
}

// Disks that the host has mounted below its root are not part of an overlay of that root: they are shown read-only at
// the same place. What the kernel makes up (proc, sysfs, tmpfs and so on) is not shown.
void show_other_disks(const fs::path& root) {
  const std::set<std::string> disks = {"ext4",     "xfs", "btrfs", "zfs",     "overlay", "9p",
                                       "virtiofs", "nfs", "nfs4",  "fuseblk", "f2fs"};
  for (const std::string& line : split(read_file("/proc/self/mounts"), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 3 || words[1] == "/" || !disks.contains(words[2]) || words[1].find('\\') != std::string::npos)
      continue;
    const fs::path target = root / words[1].substr(1);
    if (words[1].starts_with(root.native()) || !fs::is_directory(words[1])) continue;
    std::error_code failure;
    fs::create_directories(target, failure);
    if (failure || mount(words[1].c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) continue;
    mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr);
  }
}

// A copy-on-write view of the host's root, with what must be the node's own on top.
void make_root(const fs::path& folder, const fs::path& root, Bytes memory) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw system_error(errno, "cannot make mounts private");
  // What the node writes counts towards its memory; half of it, so that programs have the rest.
  mount_at("yoke-lab", folder / "cow", "tmpfs", 0, fmt::format("size={},mode=755", memory.value / 2));
  for (const char* part : {"upper", "work", "sys", "sys-upper", "sys-work"})
    fs::create_directories(folder / "cow" / part);
  mount_at("yoke-lab", root, "overlay", 0,
           fmt::format("lowerdir=/,upperdir={0}/cow/upper,workdir={0}/cow/work", folder.native()));
  show_other_disks(root);
  mount_at("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  bind("/dev", root / "dev", MS_REC);
  mount_at("yoke-lab", root / "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_at("yoke-lab", root / "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_at("yoke-lab", root / "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
  fs::create_directories(root / "run/sshd");
  fs::create_directories(root / "run/yoke-lab");
}

// sysfs of this network namespace, with the tree of the chosen hardware laid over it.
void make_hardware(const LabLayout& layout, const LabNode& node, const fs::path& folder, const fs::path& root) {
  mount_at("sysfs", folder / "cow/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
  const MemoryTree tree = lab_hardware({.machine = layout.hardware, .node = node.number});
  write_tree(tree, folder / "cow/tree");
  fs::create_directories(folder / "cow/tree/sys");
  mount_at("yoke-lab", root / "sys", "overlay", 0,
           fmt::format("lowerdir={0}/cow/tree/sys:{0}/cow/sys,upperdir={0}/cow/sys-upper,workdir={0}/cow/sys-work",
                       folder.native()));
  if (fs::exists("/sys/fs/cgroup"))
    mount("/sys/fs/cgroup", (root / "sys/fs/cgroup").c_str(), nullptr, MS_BIND | MS_REC, nullptr);
  if (fs::exists(folder / "cow/tree/etc")) {
    fs::copy(folder / "cow/tree/etc", root / "etc", fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
}

// The program itself, for ssh sessions and re-execution in the node.
void show_program(const fs::path& root) {
  const fs::path target = root / "usr/local/bin/yoke";
  fs::create_directories(target.parent_path());
  if (!fs::exists(target)) write_file_atomically(target, "", {.mode = 0755});
  bind(fs::read_symlink("/proc/self/exe"), target, 0);
}

void change_root(const fs::path& root) {
  const fs::path old = root / "mnt";
  if (chdir(root.c_str()) != 0 || syscall(SYS_pivot_root, ".", old.c_str()) != 0)
    throw system_error(errno, "cannot change the root");
  if (chroot(".") != 0 || chdir("/") != 0 || umount2("/mnt", MNT_DETACH) != 0)
    throw system_error(errno, "cannot leave the old root");
}

pid_t start_child(const std::function<int()>& function) {
  const pid_t pid = fork();
  if (pid < 0) throw system_error(errno, "cannot fork");
  if (pid == 0) _exit(function());
  return pid;
}

pid_t start_sshd() {
  return start_child([] {
    for (const char* program : {"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"}) {
      execl(program, program, "-D", "-e", "-f", "/etc/ssh/yoke_sshd_config", nullptr);
    }
    return 127;
  });
}

void wait_for_sshd(const LabNode& node, pid_t sshd) {
  const Deadline deadline = Deadline::after(10_s);
  for (;;) {
    int status = 0;
    if (waitpid(sshd, &status, WNOHANG) == sshd)
      throw Error(ErrorCode::kUnsupported, "sshd does not start: its log says why");
    if (try_to([&] { connect_tcp({to_string(node.management.address), 22}, {}, Deadline::after(1_s)); })) return;
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, "sshd does not answer");
    real_clock().sleep(5_ms);
  }
}

// The duty of a first process: nothing that dies stays a zombie. Ends with the node's sshd.
int reap_for_ever(pid_t sshd) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid == sshd) return 1;
    if (pid < 0 && errno != EINTR) return 1;
  }
}

int be_first_process(const LabLayout& layout, const LabNode& node) {
  try {
    const fs::path folder = node_folder(layout.name, node.number);
    const fs::path root = folder / "root";
    if (sethostname(node.name.data(), node.name.size()) != 0) throw system_error(errno, "cannot set the host name");
    make_root(folder, root, layout.memory);
    make_hardware(layout, node, folder, root);
    write_node_files(layout, node, root);
    show_program(root);
    WatcherOptions watching;
    if (const auto group = memory_group(layout.name, node.number)) {
      write_file_atomically(root / "run/yoke-lab/meminfo", lab_meminfo(DiskTree(), layout.memory, Bytes{0}));
      bind(root / "run/yoke-lab/meminfo", root / "proc/meminfo", 0);
      watching.memory_limit = layout.memory;
      watching.memory_usage_file = group->usage_file();
      watching.meminfo_file = "/run/yoke-lab/meminfo";
    }
    write_file_atomically(root / (kNodeMarkFile + 1), fmt::format("{}\n{}\n", layout.name, node.name));
    change_root(root);
    clearenv();
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("HOME", "/root", 1);
    start_child([&] {
      prctl(PR_SET_NAME, "yoke-watcher");
      watch_hardware(watching);
      return 0;
    });
    const pid_t sshd = start_sshd();
    wait_for_sshd(node, sshd);
    report_ready();
    return reap_for_ever(sshd);
  } catch (const std::exception& failure) {
    log(LogLevel::kError, "{}", failure.what());
    report_failure(failure);
    return 1;
  }
}

}  // namespace

int run_node(const std::string& lab, int number) {
  try {
    const LabLayout layout = load_layout(lab);
    const LabNode& node = layout.nodes.at(static_cast<std::size_t>(number - 1));
    const UniqueFd network = open_file(network_namespace(lab, number), O_RDONLY);
    if (const auto group = memory_group(lab, number); group && fs::exists(group->folder)) group->join();
    if (setns(network.get(), CLONE_NEWNET) != 0) throw system_error(errno, "cannot enter the node's network");
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) != 0) {
      throw system_error(errno, "cannot make namespaces", "a lab needs root, or user namespaces");
    }
    const pid_t first = fork();  // the first process of the new PID namespace
    if (first < 0) throw system_error(errno, "cannot fork");
    if (first == 0) return be_first_process(layout, node);
    return 0;  // our own job is done; who looks for the node finds the first process by its command line
  } catch (const std::exception& failure) {
    log(LogLevel::kError, "{}", failure.what());
    report_failure(failure);
    return 1;
  }
}

}  // namespace yoke
