#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/probe/collectors.h"
#include "yoke/probe/tree_values.h"

namespace yoke::probe {
namespace {

struct Mark {
  const char* file;
  const char* runtime;
};
// Files that a runtime puts into its containers. A pod's come first: below it is one of the others.
constexpr std::array kMarks = {Mark{"/var/run/secrets/kubernetes.io/serviceaccount", "kubernetes"},
                               Mark{"/run/.containerenv", "podman"}, Mark{"/.dockerenv", "docker"},
                               Mark{"/.singularity.d", "apptainer"}};

// The first process of a container, where it sees the machine's control groups. On the machine itself it is systemd, in
// /init.scope; a container with control groups of its own shows only "/".
std::optional<std::string> runtime_of_group(const std::string& groups) {
  constexpr std::array kGroups = {Mark{"kubepods", "kubernetes"}, Mark{"libpod", "podman"}, Mark{"/docker", "docker"},
                                  Mark{"containerd", "containerd"}};
  for (const Mark& mark : kGroups) {
    if (groups.find(mark.file) != std::string::npos) return mark.runtime;
  }
  return std::nullopt;
}

std::optional<std::string> find_container(const Sources& sources) {
  const FileTree& files = *sources.files;
  if (sources.system.container) return sources.system.container;
  for (const Mark& mark : kMarks) {
    if (files.exists(mark.file)) return mark.runtime;
  }
  // enroot leaves a lock in the root that it starts, which begins with /etc/rc.
  if (files.exists("/.lock") && files.exists("/etc/rc")) return "enroot";
  return runtime_of_group(read_if_allowed(files, "/proc/1/cgroup").value_or(""));
}

}  // namespace

void collect_containers(const Sources& sources, spec::Machine& machine) {
  const FileTree& files = *sources.files;
  spec::Containers& containers = machine.containers;
  for (const char* runtime : {"docker", "podman", "containerd", "apptainer", "enroot"}) {
    if (files.exists(std::string("/usr/bin/") + runtime)) containers.runtimes.emplace_back(runtime);
  }
  // Docker's --gpus needs NVIDIA's hook; a description of the devices (CDI) serves every runtime.
  constexpr std::array kGpuFiles = {"/usr/bin/nvidia-container-runtime", "/usr/bin/nvidia-container-runtime-hook",
                                    "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"};
  containers.gpu =
      std::any_of(kGpuFiles.begin(), kGpuFiles.end(), [&](const char* file) { return files.exists(file); });
  containers.inside = find_container(sources);
  containers.rdma_access = files.list("/dev/infiniband");
  std::erase(containers.rdma_access, "by-path");
  std::erase(containers.rdma_access, "by-ibdev");
  // By name, as a capture would hold all of /dev otherwise.
  constexpr int kMaxGpus = 16;
  for (int i = 0; i < kMaxGpus; ++i) {
    if (files.exists(fmt::format("/dev/nvidia{}", i))) containers.gpu_access.push_back(fmt::format("nvidia{}", i));
  }
}

}  // namespace yoke::probe
