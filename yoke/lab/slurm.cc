#include "yoke/lab/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/file_tree.h"
#include "yoke/base/files.h"
#include "yoke/base/hash.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/lab/node_access.h"

namespace yoke::lab {
namespace fs = std::filesystem;
using namespace literals;
namespace {

constexpr const char* kMunged = "/usr/sbin/munged";
constexpr const char* kSlurmctld = "/usr/sbin/slurmctld";
constexpr const char* kSlurmd = "/usr/sbin/slurmd";
constexpr const char* kInstall = "apt-get install slurm-wlm munge";
// All that munged has lies in one folder of its own: a key, a seed, a log, and the socket where Slurm looks for it.
constexpr const char* kMungeFolder = "/run/munge";
constexpr const char* kControllerLog = "/var/log/slurm/slurmctld.log";
constexpr const char* kNodeLog = "/var/log/slurm/slurmd.log";
constexpr Seconds kDaemonLimit{20};
constexpr Seconds kIdleLimit{60};

// {0} head, {1} its address, {2} MPI. Slurm's own kinds of containment are off: a node's namespaces and memory group
// hold its processes already, and cgroups of Slurm's would need systemd. Limits are not passed on because root in a
// container may not raise them. config_overrides: what slurmd sees is the chosen hardware, not what runs the jobs.
constexpr std::string_view kSlurmConf = R"(# Written by yoke lab.
ClusterName=lab
SlurmctldHost={0}({1})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={3}
SlurmdLogFile={4}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
PropagateResourceLimits=NONE
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault={2}
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=5
MailProg=/bin/true
)";

int gpus_of(const LabLayout& layout) {
  if (layout.hardware == "spark") return 1;
  return layout.hardware == "b300" ? 8 : 0;
}

// Slurm wants a device file for each GPU: with a bare count the node is INVAL, with a plain file jobs are not told
// which GPU is theirs. It never opens it.
std::string gpu_file(int gpu) { return fmt::format("/run/yoke-lab/gpu{}", gpu); }

std::string slurm_conf(const LabLayout& layout, const SlurmHost& host) {
  const LabNode& head = layout.nodes.front();
  const char* mpi = host.pmix == SlurmHost::Pmix::kThere ? "pmix" : "none";
  std::string text =
      fmt::format(kSlurmConf, head.name, yoke::to_string(head.management.address), mpi, kControllerLog, kNodeLog);
  const int gpus = gpus_of(layout);
  if (gpus > 0) text += "GresTypes=gpu\n";
  for (const LabNode& node : layout.nodes) {
    text += fmt::format("NodeName={} NodeAddr={} CPUs={} RealMemory={}{} State=UNKNOWN\n", node.name,
                        yoke::to_string(node.management.address), host.cpus, layout.memory.value >> 20,
                        gpus > 0 ? fmt::format(" Gres=gpu:{}", gpus) : "");
  }
  return text + "PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
}

// "slurm-wlm 22.05.8": year times 100 plus month; 0 where it says something else.
int release_of(const std::string& version) {
  int year = 0;
  int month = 0;
  const std::size_t blank = version.rfind(' ');
  const std::string number = blank == std::string::npos ? version : version.substr(blank + 1);
  return std::sscanf(number.c_str(), "%d.%d", &year, &month) == 2 ? year * 100 + month : 0;
}

// "disabled" came with 24.05 (cgroup.conf(5) of 23.11 does not have it). Before, the v1 plugin is the one that does
// nothing until asked: autodetect ends slurmd on a machine with both kinds, and v2 wants systemd.
std::string cgroup_conf(const SlurmHost& host) {
  return fmt::format("CgroupPlugin={}\n", release_of(host.version) >= 2405 ? "disabled" : "cgroup/v1");
}

// Where the plugin and the library that it loads both are: a default that cannot be loaded breaks every srun.
SlurmHost::Pmix find_pmix() {
  const DiskTree tree;
  std::vector<fs::path> folders = {"/usr/lib64", "/usr/lib"};
  for (const std::string& name : tree.list("/usr/lib")) {
    if (name.ends_with("-linux-gnu")) folders.push_back(fs::path("/usr/lib") / name);
  }
  for (const fs::path& folder : folders) {
    const bool plugin = fs::exists(folder / "slurm-wlm/mpi_pmix.so") || fs::exists(folder / "slurm/mpi_pmix.so");
    const bool library = fs::exists(folder / "libpmix.so.2") || fs::exists(folder / "pmix2/lib/libpmix.so.2");
    if (plugin && library) return SlurmHost::Pmix::kThere;
  }
  return SlurmHost::Pmix::kMissing;
}

SlurmHost this_host() {
  const Outcome version = run({.argv = {kSlurmd, "-V"}, .timeout = 10_s});
  return {.cpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
          .version = std::string(trim(version.out)),
          .pmix = find_pmix()};
}

// Runs a program in a node by `yoke lab exec`, which gives us its output and ends it at the timeout. A daemon that it
// leaves is meant to stay, so only the group, and an environment without the mark by which the one that runs *us* would
// find it and end it.
Outcome run_there(const LabLayout& layout, const LabNode& node, const std::vector<std::string>& argv) {
  throw_if_interrupted();
  Command command{.argv = {"/proc/self/exe", "lab", "exec", "--name", layout.name, node.name, "--", "env", "-i",
                           "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
                  .timeout = kDaemonLimit,
                  .kill_scope = KillScope::kGroup};
  command.argv.insert(command.argv.end(), argv.begin(), argv.end());
  return run(command);
}

void run_there_or_throw(const LabLayout& layout, const LabNode& node, const std::vector<std::string>& argv) {
  const Outcome outcome = run_there(layout, node, argv);
  if (outcome.ok()) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: '{}' {}", node.name, fmt::join(argv, " "), outcome.describe()));
}

void write_files(const LabLayout& layout, const LabNode& node, const std::vector<SlurmFile>& files,
                 const std::string& munge_key) {
  const NodeAccess access(layout.name, node);
  const auto put = [&](const fs::path& file, std::string_view content, mode_t mode) {
    access.make_folders(file.parent_path());
    access.write(file, content, {.mode = mode});
  };
  for (const SlurmFile& file : files) put(file.path, file.content, 0644);
  for (int gpu = 0; gpu < gpus_of(layout); ++gpu) access.make_device(gpu_file(gpu));
  put(fs::path(kMungeFolder) / "munge.key", munge_key, 0400);
  for (const char* folder : {"/var/lib/slurm/slurmctld", "/var/lib/slurm/slurmd", "/var/log/slurm"})
    access.make_folders(folder);
}

void start_munged(const LabLayout& layout, const LabNode& node) {
  const std::string folder = kMungeFolder;
  run_there_or_throw(layout, node, {"chown", "-R", "munge:munge", folder});
  run_there_or_throw(layout, node,
                     {"setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", kMunged,
                      "--key-file=" + folder + "/munge.key", "--seed-file=" + folder + "/munge.seed",
                      "--pid-file=" + folder + "/munged.pid", "--log-file=" + folder + "/munged.log"});
}

// The last complaint in a daemon's log, since the log goes with the lab.
std::string last_error_in(const LabLayout& layout, const LabNode& node, const char* log) {
  const auto text = try_to([&] { return NodeAccess(layout.name, node).read(log); });
  std::string found;
  for (const std::string& line : split(text ? text->value_or("") : "", '\n')) {
    if (line.find("error:") != std::string::npos || line.find("fatal:") != std::string::npos) found = line;
  }
  return printable(found);
}

Error not_idle(const LabLayout& layout, const std::vector<std::string>& unready) {
  std::string message =
      fmt::format("Slurm is not ready after {}: {}", yoke::to_string(kIdleLimit), fmt::join(unready, ", "));
  const auto add = [&](const LabNode& node, const char* log) {
    const std::string line = last_error_in(layout, node, log);
    if (!line.empty()) message += fmt::format("; {} of {}: {}", fs::path(log).stem().native(), node.name, line);
  };
  add(layout.nodes.front(), kControllerLog);
  for (const LabNode& node : layout.nodes) add(node, kNodeLog);
  return {ErrorCode::kTimeout, message, "is there enough memory? --memory 512MiB is usual"};
}

void wait_until_idle(const LabLayout& layout) {
  const auto total = static_cast<std::int64_t>(layout.nodes.size());
  const Deadline deadline = Deadline::after(kIdleLimit);
  Progress progress("waiting for Slurm", total);
  for (;;) {
    const Outcome sinfo = run_there(layout, layout.nodes.front(), {"sinfo", "-h", "-N", "-o", "%N %T"});
    const std::vector<std::string> unready = find_slurm_unready(layout, sinfo.out);
    if (unready.empty()) return;
    if (deadline.expired()) throw not_idle(layout, unready);
    progress.update(total - static_cast<std::int64_t>(unready.size()), unready.front());
    real_clock().sleep(100_ms);
  }
}

}  // namespace

std::vector<SlurmFile> slurm_files(const LabLayout& layout, const SlurmHost& host) {
  std::vector<SlurmFile> files = {{"/etc/slurm/slurm.conf", slurm_conf(layout, host)},
                                  {"/etc/slurm/cgroup.conf", cgroup_conf(host)}};
  std::string gres;
  for (int gpu = 0; gpu < gpus_of(layout); ++gpu) gres += fmt::format("Name=gpu File={}\n", gpu_file(gpu));
  if (!gres.empty()) files.push_back({"/etc/slurm/gres.conf", gres});
  return files;
}

std::vector<std::string> find_slurm_unready(const LabLayout& layout, std::string_view sinfo) {
  std::map<std::string, std::string> states;
  for (const std::string& line : split(sinfo, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() == 2) states[words[0]] = words[1];
  }
  std::vector<std::string> unready;
  for (const LabNode& node : layout.nodes) {
    const auto state = states.find(node.name);
    if (state == states.end()) {
      unready.push_back(fmt::format("{} is unknown to Slurm", node.name));
    } else if (state->second != "idle") {
      unready.push_back(fmt::format("{} is '{}'", node.name, printable(state->second, 40)));
    }
  }
  return unready;
}

void require_slurm() {
  for (const char* program : {kMunged, kSlurmctld, kSlurmd, "/usr/bin/sinfo"}) {
    if (access(program, X_OK) == 0) continue;
    throw Error(ErrorCode::kNotFound, fmt::format("--with slurm needs {}, which is not installed", program), kInstall);
  }
}

void start_slurm(const LabLayout& layout) {
  require_slurm();
  const std::vector<SlurmFile> files = slurm_files(layout, this_host());
  const std::string munge_key = random_token_hex(64);  // of 32 to 1024 bytes, one for the whole lab
  for (const LabNode& node : layout.nodes) {
    write_files(layout, node, files, munge_key);
    start_munged(layout, node);
  }
  run_there_or_throw(layout, layout.nodes.front(), {kSlurmctld, "-c"});  // there is no earlier state to look for
  for (const LabNode& node : layout.nodes) run_there_or_throw(layout, node, {kSlurmd});
  wait_until_idle(layout);
}

}  // namespace yoke::lab
