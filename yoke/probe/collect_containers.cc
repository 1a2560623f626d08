#include <algorithm>
#include <array>

#include "yoke/probe/collectors.h"

namespace yoke {

void collect_containers(const Sources& sources, Machine& machine) {
  const FileTree& files = *sources.files;
  Containers& containers = machine.containers;
  for (const char* runtime : {"docker", "podman", "containerd", "apptainer", "enroot"}) {
    if (files.exists(std::string("/usr/bin/") + runtime)) containers.runtimes.emplace_back(runtime);
  }
  // Docker's --gpus needs NVIDIA's hook; a description of the devices (CDI) serves every runtime.
  constexpr std::array kGpuFiles = {"/usr/bin/nvidia-container-runtime", "/usr/bin/nvidia-container-runtime-hook",
                                    "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"};
  containers.gpu =
      std::any_of(kGpuFiles.begin(), kGpuFiles.end(), [&](const char* file) { return files.exists(file); });
  if (files.exists("/.dockerenv")) containers.inside = "docker";
  if (files.exists("/run/.containerenv")) containers.inside = "podman";
  containers.rdma_access = files.list("/dev/infiniband");
  std::erase(containers.rdma_access, "by-path");
  std::erase(containers.rdma_access, "by-ibdev");
}

}  // namespace yoke
