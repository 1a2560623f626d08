#include "yoke/lab/node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/log.h"
#include "yoke/base/socket.h"
#include "yoke/lab/cgroup.h"
#include "yoke/lab/holder.h"
#include "yoke/lab/node_files.h"
#include "yoke/lab/node_root.h"
#include "yoke/lab/parts.h"
#include "yoke/lab/state.h"
#include "yoke/lab/watcher.h"
#include "yoke/lab/watcher_meminfo.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;
namespace {

pid_t start_sshd() {
  return fork_call([] {
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
      throw Error(ErrorCode::kUnsupported, "sshd does not start: see its log");
    if (try_to([&] { connect_tcp({yoke::to_string(node.management.address), 22}, {}, Deadline::after(1_s)); })) return;
    if (deadline.expired()) throw Error(ErrorCode::kTimeout, "sshd does not answer");
    real_clock().sleep(5_ms);
  }
}

// The duty of a first process: nothing that dies stays a zombie. A machine lives on when its sshd ends; power-off,
// which kills this process, ends the node.
[[noreturn]] void reap_for_ever() {
  for (;;) {
    int status = 0;
    if (waitpid(-1, &status, 0) < 0 && errno != EINTR) sleep(1);  // no child is left
  }
}

int be_first_process(const LabLayout& layout, const LabNode& node) {
  umask(022);  // a node is a machine of its own: the starter's umask would close its root to its users
  try {
    record_part(layout.name, node.number);
    const fs::path folder = node_folder(layout.name, node.number);
    const fs::path root = folder / "root";
    if (sethostname(node.name.data(), node.name.size()) != 0) throw system_error(errno, "cannot set the host name");
    const std::vector<std::string> missing = make_node_root(layout, node, folder, root);
    if (!missing.empty()) write_file_atomically(folder / "missing", fmt::format("{}\n", fmt::join(missing, "\n")));
    write_node_files(layout, node, root);
    WatcherOptions watching;
    watching.split_ports = layout.topology == spec::Topology::kMesh;
    if (const auto group = memory_group(layout.name, node.number)) {
      write_file_atomically(root / "run/yoke-lab/meminfo", lab_meminfo(DiskTree(), layout.memory, Bytes{0}));
      bind_mount(root / "run/yoke-lab/meminfo", root / "proc/meminfo", 0);
      watching.memory_limit = layout.memory;
      watching.memory_usage_file = group->usage_file();
      watching.meminfo_file = "/run/yoke-lab/meminfo";
    }
    write_file_atomically(root / (kNodeMarkFile + 1), fmt::format("{}\n{}\n", layout.name, node.name));
    change_root(root);
    clearenv();
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    setenv("HOME", "/root", 1);
    fork_call([&] {
      prctl(PR_SET_NAME, "yoke-watcher");
      watch_hardware(watching);
      return 0;
    });
    const pid_t sshd = start_sshd();
    wait_for_sshd(node, sshd);
    report_ready();
    reap_for_ever();
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
    const UniqueFd network = open_network(lab, number);
    if (const auto group = memory_group(lab, number); group && fs::exists(group->folder)) group->join();
    if (setns(network.get(), CLONE_NEWNET) != 0) throw system_error(errno, "cannot enter the node's network");
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) != 0) {
      throw system_error(errno, "cannot make namespaces", "a lab needs root, or user namespaces");
    }
    fork_call([&] { return be_first_process(layout, node); });  // the first process of the new PID namespace
    // Our own job is done: the first process records itself. What runs at a usual exit, as a check for leaks, may start
    // a helper, which would be in the new namespace and not see this process.
    std::_Exit(0);
  } catch (const std::exception& failure) {
    log(LogLevel::kError, "{}", failure.what());
    report_failure(failure);
    return 1;
  }
}

}  // namespace yoke::lab
