// Which rules had something to examine. A rule is counted by what it is about, so that "clean" says how much it covers.
#include <algorithm>
#include <array>

#include "yoke/base/text.h"
#include "yoke/check/rule.h"
#include "yoke/check/servers.h"

namespace yoke::check {
namespace {

template <class Function>
bool any_machine(const ClusterView& view, Function&& function) {
  return std::ranges::any_of(view.facts.nodes,
                             [&](const spec::SurveyedNode& node) { return node.machine && function(*node.machine); });
}

bool has_rails(const ClusterView& view) { return !view.rails.empty() || !view.unlisted.empty(); }
bool has_rdma(const ClusterView& view) {
  return any_machine(view, [](const spec::Machine& machine) { return !machine.rdma_devices.empty(); });
}
bool has_gpus(const ClusterView& view) {
  return any_machine(view, [](const spec::Machine& machine) { return !machine.gpus.empty() || machine.gpu_problem; });
}
bool has_servers(const ClusterView& view) {
  return any_machine(view, [](const spec::Machine& machine) { return server_of(machine) != nullptr; });
}
bool has_nccl(const ClusterView& view) {
  return any_machine(view, [](const spec::Machine& machine) { return !machine.nccl.empty(); });
}
bool has_settings(const ClusterView& view) {
  return any_machine(view, [](const spec::Machine& machine) { return !machine.settings.empty(); });
}
bool has_unified_memory(const ClusterView& view) {
  return any_machine(view, [](const spec::Machine& machine) { return machine.memory.unified; });
}
bool has_nodes(const ClusterView& view) { return view.facts.nodes.size() > 1; }
bool has_file(const ClusterView& view) { return view.facts.cluster.has_value(); }
bool is_ring_or_mesh(const ClusterView& view) {
  const auto& cluster = view.facts.cluster;
  return cluster && cluster->fabric && spec::is_ring_or_mesh(cluster->fabric->topology);
}

// What the rules named are about, beyond the parts of a survey that the table says they need.
struct Subject {
  std::string_view rules;
  std::string_view missing;
  bool (*is_there)(const ClusterView&);
};

constexpr std::array kSubjects = {
    Subject{
        "interface-missing rail-unlisted rail-down rail-unaddressed not-set-up address-twice address-differs "
        "prefix-differs subnet-differs subnet-shared mtu-differs mtu-small jumbo-blocked route-elsewhere route-missing "
        "rail-silent firewall port-slow pcie-narrow",
        "cabled rails", has_rails},
    Subject{"rdma-down gid-empty gid-link-local gid-roce-v1 gid-pinned container-no-rdma memlock-low", "an RDMA device",
            has_rdma},
    Subject{
        "gpu-pcie-narrow gpu-dead gpu-stuck gpu-off-nvlink nic-far driver-differs driver-old cuda-old gpu-throttled "
        "gpu-clock-locked gpu-power-limit gpu-ecc row-remap gpu-xid",
        "a GPU", has_gpus},
    Subject{"gpu-missing fabric-manager fabric-manager-differs nvlink-missing nvlink-errors gpu-memory-held "
            "persistence-off acs-redirects iommu-translates gpudirect-missing",
            "a server with NVLink", has_servers},
    Subject{"pin-some-rails", "a server with NVLink", has_servers},
    Subject{"flow-control-differs rail-losses rail-flaps", "cabled rails", has_rails},
    Subject{"nccl-architecture nccl-bad-build nccl-differs", "an NCCL library", has_nccl},
    Subject{"pin-empty pin-absent pin-no-rdma pin-unusable pin-one-rail pin-wide", "variables of NCCL or UCX",
            has_settings},
    Subject{"kernel-no-cma swap-used page-cache-held", "unified memory", has_unified_memory},
    Subject{"node-twice kernel-differs clock-skew name-wrong", "a second node", has_nodes},
    Subject{"nodes-swapped address-wifi address-bridge", "a cluster file", has_file},
    Subject{"forwarding-off docker-forward ring-path nccl-no-ring", "a ring or mesh", is_ring_or_mesh},
};

std::optional<std::string_view> what_lacks(const Rule& rule, const ClusterView& view) {
  for (const Subject& subject : kSubjects) {
    const std::vector<std::string> names = split(std::string(subject.rules), ' ');
    if (std::ranges::find(names, rule.name) != names.end() && !subject.is_there(view)) return subject.missing;
  }
  return std::nullopt;
}

std::string_view missing_part(const Rule& rule, Needs parts) {
  const Needs lacking = rule.needs & ~parts;
  if (lacking & kNeedsLog) return "";  // `yoke check nccl-log` has it, and nobody misses it elsewhere
  if (lacking & kNeedsCabling) return "";
  return "a measurement";
}

}  // namespace

Coverage coverage_of(const spec::Survey& survey, Needs parts) {
  const ClusterView view(survey);
  const Needs there = parts & parts_of(survey);
  Coverage coverage{.rules = rule_table().size()};
  for (const Rule& rule : rule_table()) {
    const bool applied = applies(rule, there);
    const auto lacks = applied ? what_lacks(rule, view) : std::optional(missing_part(rule, there));
    if (!lacks) {
      ++coverage.examined;
    } else if (!lacks->empty() && std::ranges::find(coverage.missing, *lacks) == coverage.missing.end()) {
      coverage.missing.emplace_back(*lacks);
    }
  }
  return coverage;
}

}  // namespace yoke::check
