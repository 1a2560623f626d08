// A launch plan as text to read, keep and run: a script for each node, docker and apptainer lines, a batch script of
// Slurm, manifests of Kubernetes, units of systemd. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/launch/launch_plan.h"

namespace yoke::launch {

enum class Through { kSsh, kScript, kDocker, kApptainer, kSlurm, kKubernetes };
constexpr auto enum_names(Through) {
  return std::array{std::pair{"ssh", Through::kSsh},       std::pair{"script", Through::kScript},
                    std::pair{"docker", Through::kDocker}, std::pair{"apptainer", Through::kApptainer},
                    std::pair{"slurm", Through::kSlurm},   std::pair{"kubernetes", Through::kKubernetes}};
}
std::vector<std::string> through_names();
Through through_from(const std::string& name);  // Error(kUsage)

struct ThroughOptions {
  std::string partition, account, time_limit;  // of Slurm; empty: the cluster's default
  bool gpu_request = true;                     // of Slurm: asks for GPUs; off where the site has no GRES
  std::string rdma_resource;                   // of Kubernetes: the site's name for its RDMA devices
  Bytes hugepages{0};                          // of Kubernetes: huge pages of 2 MiB for each pod; 0: none
  std::string folder;                          // to run in; empty: wherever the script is started
  Bytes floor{0};                              // of the guard; 0: no guard
  Bytes limit{0};                              // of host memory in a control group or a container of Docker; 0: none
};

struct RenderedFile {
  std::string name;
  std::string text;
  unsigned mode = 0644;
};

std::vector<RenderedFile> render(Through through, const LaunchPlan& plan, const ThroughOptions& options);
// A service for each node that has a process, and its script: /etc/yoke/launch/NAME.sh. Error(kUsage) for Slurm and
// Kubernetes, which restart what they start.
std::vector<RenderedFile> render_units(Through through, const LaunchPlan& plan, const ThroughOptions& options);

// A process as it runs inside a container of the node; Docker gives that `limit` of host memory, 0: none.
// Error(kUnsupported) where the engine cannot be started so.
std::vector<std::string> container_argv(Through through, const LaunchPlan& plan, const NodeProcess& process,
                                        Bytes limit);
std::string container_name(const LaunchPlan& plan);

// The head's API, where a worker of this node must end with the head: it cannot rejoin a new one. A launch over ssh
// ends all ranks itself; scripts and units of different nodes do not know of each other.
std::optional<std::string> followed_port(const LaunchPlan& plan, std::size_t node);

// What the guard of a script is started with, after "yoke launch guard"; empty: there is nothing to watch.
std::string guard_words(Through through, const LaunchPlan& plan, const ThroughOptions& options, std::size_t node);

// Parts that several renderers share.
// By bash, kDocker or kApptainer; kSsh is as kScript.
std::string node_script(Through through, const LaunchPlan& plan, const ThroughOptions& options, std::size_t node);
std::string bash_word(const std::string& word);  // as bash reads it back; plain words stay plain
std::string exports_text(const std::vector<spec::FabricPin>& environment, std::string_view indent = "");
// The small files of a launch, written by the script; the folder of a profile.
std::string files_text(const LaunchPlan& plan);
std::string words_text(const std::vector<std::string>& argv, std::string_view indent = "");
RenderedFile slurm_script(const LaunchPlan& plan, const ThroughOptions& options);
RenderedFile kubernetes_manifest(const LaunchPlan& plan, const ThroughOptions& options);

// Why a batch script of Slurm starts every GPU's process several times; empty: it does not. A task for each GPU, each
// with a launcher that itself starts a process for each GPU.
std::string find_double_launch(std::string_view script);

}  // namespace yoke::launch
