#include "yoke/launch/slurm_allocation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "yoke/base/text.h"
#include "yoke/spec/hostlist.h"

namespace yoke::launch {
namespace {

std::string slurm_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// "b300-1.rack.example" is b300-1.
std::string_view short_name(std::string_view name) { return name.substr(0, name.find('.')); }

const spec::ClusterNode* find_node(const spec::Cluster& cluster, const std::string& host) {
  for (const spec::ClusterNode& node : cluster.nodes) {
    if (node.name == host || node.address == host || short_name(node.address) == host) return &node;
  }
  return nullptr;
}

}  // namespace

std::optional<Allocation> find_allocation() {
  const std::string list = slurm_variable("SLURM_JOB_NODELIST"), job = slurm_variable("SLURM_JOB_ID");
  const std::string tasks = slurm_variable("SLURM_STEP_NUM_TASKS");
  if (list.empty() || job.empty() || (!tasks.empty() && tasks != "1")) return std::nullopt;
  return Allocation{printable(job, 20), spec::expand_hostlist(list)};
}

AllocatedCluster cluster_of(const Allocation& allocation, const std::optional<spec::Cluster>& file) {
  std::vector<spec::ClusterNode> listed;
  for (const std::string& host : allocation.nodes) {
    const spec::ClusterNode* node = file ? find_node(*file, host) : nullptr;
    if (node) listed.push_back(*node);
  }
  if (file && listed.size() == allocation.nodes.size()) {
    spec::Cluster cluster = *file;
    cluster.nodes = std::move(listed);
    return {std::move(cluster), ""};
  }
  spec::Cluster cluster{.name = "slurm-" + allocation.job, .nodes = {}};
  for (const std::string& host : allocation.nodes) {
    cluster.nodes.push_back({.name = std::string(short_name(host)), .address = host});
  }
  if (!file) return {std::move(cluster), ""};
  std::vector<std::string> names;
  for (const spec::ClusterNode& node : file->nodes) names.push_back(node.name);
  return {std::move(cluster),
          fmt::format("the cluster file lists other nodes ({}) than Slurm job {} has ({}): it is not used",
                      printable(fmt::format("{}", fmt::join(names, ", ")), 120), allocation.job,
                      printable(fmt::format("{}", fmt::join(allocation.nodes, ", ")), 120))};
}

}  // namespace yoke::launch
