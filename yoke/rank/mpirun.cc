#include "yoke/rank/mpirun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/process.h"
#include "yoke/job/job.h"
#include "yoke/remote/carry.h"
#include "yoke/remote/local_shell.h"
#include "yoke/remote/ssh_shell.h"

namespace yoke {
namespace {

using namespace literals;

// Where the program lies on all nodes: the same path, or mpirun could not start it.
std::string carry_everywhere(const Cluster& cluster) {
  std::string path;
  for (const ClusterNode& node : cluster.nodes) {
    SshShell shell(host_of(node));
    const std::string there = carry_program(shell, "/proc/self/exe");
    if (!path.empty() && there != path) {
      throw Error(ErrorCode::kUnsupported, fmt::format("{} keeps programs at {}, others at {}", node.name, there, path),
                  "mpirun needs the same home folder on all nodes");
    }
    path = there;
  }
  return path;
}

void set_default(std::map<std::string, std::string>& environment, const char* name, std::string value) {
  if (!std::getenv(name)) environment.emplace(name, std::move(value));
}

// Open MPI's own choices are made by what is known of the machines; the user's environment has the last word.
std::map<std::string, std::string> open_mpi_settings(const MpirunTask& task) {
  std::map<std::string, std::string> settings = {{task.variable, task.task}};
  set_default(settings, "OMPI_MCA_pml", "ob1");
  set_default(settings, "OMPI_MCA_btl", "self,vader,tcp");
  // One rank a node is bound to its first core otherwise, and in a lab all nodes share that core.
  set_default(settings, "OMPI_MCA_hwloc_base_binding_policy", "none");
  const std::size_t nodes = task.cluster ? task.cluster->nodes.size() : 1;
  if (task.yields || static_cast<unsigned>(task.ranks) > std::thread::hardware_concurrency() * nodes) {
    set_default(settings, "OMPI_MCA_mpi_yield_when_idle", "1");
  }
  if (task.cluster && task.cluster->fabric && !task.cluster->fabric->subnets.empty()) {
    std::vector<std::string> subnets;
    for (const Ipv4Prefix& subnet : task.cluster->fabric->subnets) subnets.push_back(to_string(subnet));
    set_default(settings, "OMPI_MCA_btl_tcp_if_include", fmt::format("{}", fmt::join(subnets, ",")));
  }
  return settings;
}

std::vector<std::string> mpirun_line(const MpirunTask& task, const std::string& program) {
  std::vector<std::string> line = {"mpirun", "-np", fmt::format("{}", task.ranks), "-x", task.variable};
  if (geteuid() == 0) line.emplace_back("--allow-run-as-root");
  if (task.cluster) {
    std::vector<std::string> hosts;
    for (const JobNode& node : spread_ranks(task.cluster->nodes, task.ranks)) {
      hosts.push_back(fmt::format("{}:{}", node.node.address, node.ranks));
    }
    line.insert(line.end(), {"--host", fmt::format("{}", fmt::join(hosts, ","))});
  } else {
    line.emplace_back("--oversubscribe");
  }
  line.insert(line.end(), {program, task.part});
  return line;
}

}  // namespace

void run_under_mpirun(const MpirunTask& task) {
  if (!is_installed("mpirun")) {
    throw Error(ErrorCode::kNotFound, "mpirun is not installed", "apt-get install openmpi-bin, on every node");
  }
  const std::string program =
      task.cluster ? carry_everywhere(*task.cluster) : std::filesystem::read_symlink("/proc/self/exe").native();
  const Outcome outcome = run({.argv = mpirun_line(task, program),
                               .environment = open_mpi_settings(task),
                               .timeout = Seconds{24 * 3600},
                               .on_line = [&](OutputStream stream, std::string_view line) {
                                 if (stream == OutputStream::kErr && task.on_error_line) {
                                   task.on_error_line(line);
                                 } else if (stream == OutputStream::kErr) {
                                   fmt::print(stderr, "{}\n", line);
                                 } else {
                                   task.on_output(std::string(line) + "\n");
                                 }
                               }});
  if (!outcome.ok()) throw Error(ErrorCode::kUnavailable, "mpirun " + outcome.describe());
}

}  // namespace yoke
