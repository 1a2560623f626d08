// NCCL libraries: code for the GPU, builds known to be bad, differences between nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "yoke/base/text.h"
#include "yoke/check/differences.h"
#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

// Major times ten plus minor, as in sm_121; nothing for what is no such number.
std::optional<int> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc{} && number > 0 ? std::optional(number) : std::nullopt;
}

std::optional<int> capability_of(const spec::Gpu& gpu) {  // "12.1" to 121
  const std::vector<std::string> parts = split(gpu.compute_capability.value_or(""), '.');
  if (parts.size() != 2) return std::nullopt;
  const auto major = number_after(parts[0], "");
  int minor = 0;
  const auto [rest, failure] = std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), minor);
  return major && failure == std::errc{} ? std::optional(*major * 10 + minor) : std::nullopt;
}

// CUDA's rule: machine code runs on GPUs of the same major number and no smaller minor one; with the suffix 'a' on its
// own GPU only; PTX is compiled for any GPU that is not older.
bool has_code_for(const spec::NcclBuild& build, int gpu) {
  for (const std::string& code : build.architectures) {
    const auto number = number_after(code, "sm_");
    if (!number) continue;
    if (code.ends_with('a') ? *number == gpu : *number / 10 == gpu / 10 && *number <= gpu) return true;
  }
  return std::any_of(build.ptx.begin(), build.ptx.end(), [&](const std::string& code) {
    const auto number = number_after(code, "compute_");
    return number && (code.ends_with('a') ? *number == gpu : *number <= gpu);
  });
}

// "2.28.9+cuda13.0" to {2, 28, 9}.
std::array<int, 3> version_of(const spec::NcclBuild& build) {
  std::array<int, 3> version{};
  const std::vector<std::string> parts =
      split(build.version.value_or("").substr(0, build.version.value_or("").find('+')), '.');
  for (std::size_t i = 0; i < parts.size() && i < version.size(); ++i)
    version[i] = number_after(parts[i], "").value_or(0);
  return version;
}

struct BadBuild {
  std::string_view build_id;  // how it begins; empty: any
  std::array<int, 3> least, most;
  std::string_view why, fix;
};
// All on a GB10. Sources in docs/checks.md.
constexpr std::array kBadBuilds = {
    BadBuild{"a7f420a1",
             {2, 28, 9},
             {2, 28, 9},
             "this build of 2.28.9 (from pip) hung after 20 to 26 minutes of load",
             "use DGX OS's own libnccl2 2.28.9, which did not, or a newer release"},
    BadBuild{"", {2, 27, 4}, {2, 27, 7}, "2.27.7, as in some containers, hangs on a GB10", "use 2.28.9 or newer"},
    BadBuild{"", {2, 0, 0}, {2, 27, 2}, "releases before 2.27.3 do not know the GB10", "use 2.28.9 or newer"},
};
constexpr std::array kFirstWithRings = {2, 30, 7};

std::string described(const spec::NcclBuild& build) {
  return fmt::format("{} ({}{})", build.path, build.version.value_or("unknown version"),
                     build.build_id ? ", build " + build.build_id->substr(0, 8) : "");
}

}  // namespace

AdviceList find_nccl_without_architecture(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine) continue;
    std::set<int> gpus;
    for (const spec::Gpu& gpu : node.machine->gpus) {
      if (const auto capability = capability_of(gpu)) gpus.insert(*capability);
    }
    for (const spec::NcclBuild& build : node.machine->nccl) {
      if (build.architectures.empty() && build.ptx.empty()) continue;  // could not be read
      for (const int gpu : gpus) {
        if (has_code_for(build, gpu)) continue;
        list.push_back({.node = node.name,
                        .subject = build.path,
                        .what = fmt::format("an NCCL library on {} has no code for its GPU (sm_{})", node.name, gpu),
                        .evidence = fmt::format("{} holds {}", described(build),
                                                build.architectures.empty()
                                                    ? fmt::format("{}", fmt::join(build.ptx, ", "))
                                                    : fmt::format("{}", fmt::join(build.architectures, ", "))),
                        .consequence = "collectives fail with 'no kernel image' or 'invalid device function'",
                        .fix = fmt::format("install a build with sm_{}{}", gpu,
                                           gpu / 10 == 12 ? " or sm_120 (2.28.9 and newer have it)" : "")});
      }
    }
  }
  return list;
}

AdviceList find_bad_nccl_builds(const ClusterView& view) {
  AdviceList list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || !is_gb10(*node.machine)) continue;
    for (const spec::NcclBuild& build : node.machine->nccl) {
      const std::array<int, 3> version = version_of(build);
      const auto bad = std::find_if(kBadBuilds.begin(), kBadBuilds.end(), [&](const BadBuild& row) {
        return version >= row.least && version <= row.most && build.build_id.value_or("").starts_with(row.build_id);
      });
      if (bad == kBadBuilds.end()) continue;
      list.push_back({.node = node.name,
                      .subject = build.path,
                      .what = fmt::format("{} has an NCCL library with a bad record", node.name),
                      .evidence = fmt::format("{}: {}", described(build), bad->why),
                      .consequence = "jobs that load it may hang for ever",
                      .fix = std::string(bad->fix)});
    }
  }
  return list;
}

AdviceList find_nccl_without_rings(const ClusterView& view) {
  AdviceList list;
  const auto& cluster = view.facts.cluster;
  if (!cluster || !cluster->fabric || !spec::is_ring_or_mesh(cluster->fabric->topology) || view.lab) return list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || node.machine->nccl.empty()) continue;
    const auto& builds = node.machine->nccl;
    if (std::any_of(builds.begin(), builds.end(),
                    [](const spec::NcclBuild& b) { return version_of(b) >= kFirstWithRings; }))
      continue;
    list.push_back({.node = node.name,
                    .subject = builds.front().path,
                    .what = fmt::format("no NCCL library on {} can use a {} of cables", node.name,
                                        spec::to_string(cluster->fabric->topology)),
                    .evidence = fmt::format("the newest wanted is 2.30.7; there is {}", described(builds.front())),
                    .consequence = "NCCL pairs rails that are not cabled to each other: ibv_modify_qp error 110",
                    .fix = "2.30.7 or newer with NCCL_IB_SUBNET_AWARE_ROUTING=1 and NCCL_IB_MERGE_NICS=0"});
  }
  return list;
}

AdviceList find_differing_nccls(const ClusterView& view) {
  const auto difference = find_difference(view.facts, "NCCL");
  if (!difference) return {};
  const std::string& first = difference->values[0].nodes.front();
  const spec::SurveyedNode* other = view.find_node(difference->values[1].nodes.front());
  if (!other->machine || other->machine->nccl.empty()) return {};  // two nodes of one name
  return {{.node = other->name,
           .subject = other->machine->nccl.front().path,
           .what = fmt::format("{} and {} have different NCCL libraries", first, other->name),
           .evidence = to_string(*difference),
           .consequence = "ranks that load different builds refuse each other, or hang",
           .fix = "install the same package on all nodes, or use one container image by its digest"}};
}

}  // namespace yoke::check
