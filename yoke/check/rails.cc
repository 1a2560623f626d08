// The rails of the machines against those of the cluster file: what it omits, and what setup has not done yet.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/check/rules.h"

namespace yoke::check {
namespace {

Advice no_rails_listed(const std::vector<std::pair<const spec::SurveyedNode*, std::vector<std::string>>>& by_node) {
  std::vector<std::string> cabled;
  for (const auto& [node, names] : by_node) {
    cabled.push_back(fmt::format("{} has {}", node->name, fmt::join(names, ", ")));
  }
  return {.what = "the cluster file lists no rails, although the nodes have cabled fast ports",
          .evidence = fmt::format("{}", fmt::join(cabled, "; ")),
          .consequence = "yoke run, bench and job use the management network, at a fraction of the rate",
          .fix = "'yoke link discover -o cluster.yaml --force' lists them, 'yoke link setup' sets their addresses"};
}

}  // namespace

AdviceList find_unlisted_rails(const ClusterView& view) {
  const auto& cluster = view.facts.cluster;
  if (!cluster || view.unlisted.empty() || cluster->nodes.size() < 2) return {};
  std::vector<std::pair<const spec::SurveyedNode*, std::vector<std::string>>> by_node;
  for (const RailEnd& end : view.unlisted) {
    // An entry for an interface that the machine does not have is reported as that: it may be meant for this rail.
    const std::vector<const RailEnd*> listed = view.rails_of(*end.node);
    if (std::ranges::any_of(listed, [](const RailEnd* rail) { return !rail->interface; })) continue;
    if (by_node.empty() || by_node.back().first != end.node) by_node.push_back({end.node, {}});
    by_node.back().second.push_back(end.name);
  }
  const bool none =
      std::ranges::all_of(cluster->nodes, [](const spec::ClusterNode& node) { return node.rails.empty(); });
  if (none && !by_node.empty()) {
    return {no_rails_listed(by_node)};
  }
  AdviceList list;
  for (const auto& [node, names] : by_node) {
    const std::string joined = fmt::format("{}", fmt::join(names, ", "));
    list.push_back(
        {.node = node->name,
         .subject = joined,
         .what = fmt::format("{} of {} {} a cable, but the cluster file does not list {}", joined, node->name,
                             names.size() == 1 ? "has" : "have", names.size() == 1 ? "it" : "them"),
         .evidence = fmt::format("'rails' of {} in the cluster file does not name {}, and 'unused' gives "
                                 "no reason to leave {} out",
                                 node->name, joined, names.size() == 1 ? "it" : "them"),
         .consequence = "nothing is sent over it: on a Spark one of two rails is half of the cable's rate",
         .fix = fmt::format("'yoke link discover -o cluster.yaml --force', then 'yoke link setup'; to leave "
                            "it out on purpose write unused: [{{ interface: {}, reason: … }}] at {}",
                            names.front(), node->name)});
  }
  return list;
}

AdviceList find_incomplete_setups(const ClusterView& view) {
  AdviceList list;
  const bool begun = std::ranges::any_of(view.facts.nodes, [](const auto& node) { return !node.setup_files.empty(); });
  if (!begun) return list;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    if (!node.machine || node.setup_files.size() == spec::kSetupFiles.size()) continue;
    std::vector<std::string_view> missing;
    for (const std::string_view file : spec::kSetupFiles) {
      if (std::ranges::find(node.setup_files, file) == node.setup_files.end()) missing.push_back(file);
    }
    list.push_back({.node = node.name,
                    .what = fmt::format("'yoke link setup' was cut short on {}", node.name),
                    .evidence = fmt::format("it lacks {}, which setup leaves on every node", fmt::join(missing, ", ")),
                    .consequence = "the nodes differ: limits and pins that jobs need are on some of them only",
                    .fix = "'yoke link setup' goes on where it stopped; 'yoke link undo' takes back what was done"});
  }
  return list;
}

AdviceList find_nodes_not_set_up(const ClusterView& view) {
  std::vector<std::string> names, evidence;
  for (const spec::SurveyedNode& node : view.facts.nodes) {
    const std::vector<const RailEnd*> rails = view.rails_of(node);
    const bool waits = std::ranges::all_of(
        rails, [](const RailEnd* end) { return end->wanted && end->is_up() && !end->address && end->bond.empty(); });
    if (rails.size() < 2 || !waits) continue;  // a single rail is reported as that
    names.push_back(node.name);
    for (const RailEnd* end : rails) {
      evidence.push_back(fmt::format("{} {} should have {}", node.name, end->name, to_string(*end->wanted)));
    }
  }
  if (names.empty()) return {};
  const auto advice = [&](const std::string& where) {
    return Advice{.what = fmt::format("the addresses of the cluster file are not set on {}", where),
                  .evidence = fmt::format("no address on any rail: {}", fmt::join(evidence, ", ")),
                  .consequence = "nothing can use the fast ports yet",
                  .fix = "'yoke link setup' (shows each step and asks first; --dry-run only shows them)"};
  };
  if (names.size() == view.facts.nodes.size()) return {advice(fmt::format("{}", fmt::join(names, ", ")))};
  AdviceList list;
  for (const std::string& name : names) {
    list.push_back(advice(name));
    list.back().node = name;
  }
  return list;
}

}  // namespace yoke::check
