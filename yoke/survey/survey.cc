#include "yoke/survey/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/probe/probe.h"
#include "yoke/survey/node_survey.h"

namespace yoke {
namespace {

// Behind a switch every node meets every other: beyond this many, each tries only its neighbours in the file.
constexpr std::size_t kAllPairsMost = 4;

bool are_neighbours(std::size_t a, std::size_t b, std::size_t count) {
  const std::size_t apart = a > b ? a - b : b - a;
  return apart == 1 || apart == count - 1;
}

// Addresses of a ring that are on none of the node's own cables: its neighbours' far ends, and all of the others.
std::vector<FarTrial> far_addresses(const Cluster& cluster, std::size_t node) {
  std::vector<FarTrial> far;
  const std::vector<Half>& own = cluster.nodes[node].halves;
  for (std::size_t other = 0; other < cluster.nodes.size(); ++other) {
    if (other == node) continue;
    for (const Half& theirs : cluster.nodes[other].halves) {
      const bool near = std::any_of(
          own.begin(), own.end(), [&](const Half& half) { return half.address.network() == theirs.address.network(); });
      if (!near) far.push_back({.peer = cluster.nodes[other].name, .address = theirs.address.address});
    }
  }
  return far;
}

// What ssh itself refuses shows at the login; whatever a node does not let us do after it is something else.
NodeFailure node_failure(const Error& error, const Node& node) {
  NodeFailureKind kind = NodeFailureKind::kOther;
  if (error.code() == ErrorCode::kPermission && !node.logged_in()) kind = NodeFailureKind::kAsks;
  if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kTimeout) {
    kind = NodeFailureKind::kUnreachable;
  }
  return {kind, error.message(), error.hint()};
}

SurveyedNode survey_node(Node& node, const SurveyedNode& questions, Seconds timeout) {
  SurveyedNode answer = surveyed_node_from_json(node.ask("survey", to_json(questions), timeout));
  answer.name = node.name();
  if (!node.is_here()) answer.clock_ahead = node.clock_ahead();
  return answer;
}

}  // namespace

NodeOptions survey_login(Seconds timeout) {
  return {.ssh = {.connect_timeout = timeout, .login_timeout = timeout, .fresh_login = true}};
}

std::vector<SurveyedNode> questions_for(const Cluster& cluster) {
  const Fabric fabric = cluster.fabric.value_or(Fabric{});
  const std::size_t count = cluster.nodes.size();
  std::vector<SurveyedNode> questions;
  for (std::size_t i = 0; i < count; ++i) {
    SurveyedNode node{.name = cluster.nodes[i].name};
    if (fabric.topology == Topology::kRing && count > 2) {
      node.forward_policy = "?";
      node.far = far_addresses(cluster, i);
    }
    for (std::size_t j = 0; j < count; ++j) {
      if (count > kAllPairsMost && i != j && !are_neighbours(i, j, count)) continue;
      node.names.push_back({.name = cluster.nodes[j].name, .addresses = {}});
      if (i == j) continue;
      for (const Half& ours : cluster.nodes[i].halves) {
        for (const Half& theirs : cluster.nodes[j].halves) {
          if (ours.address.network() != theirs.address.network()) continue;
          node.paths.push_back({.interface = ours.interface,
                                .peer = cluster.nodes[j].name,
                                .peer_address = theirs.address.address,
                                .large_size = fabric.mtu});
          break;  // where both halves are in one network, each meets one end
        }
      }
    }
    questions.push_back(std::move(node));
  }
  return questions;
}

Survey survey_nodes(Fleet& fleet, const Cluster& cluster, Seconds timeout) {
  const std::vector<SurveyedNode> questions = questions_for(cluster);
  const auto answers = fleet.each(
      "looking at the nodes", [&](Node& node, std::size_t i) { return survey_node(node, questions.at(i), timeout); });
  Survey survey{.cluster = cluster};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) {
      survey.nodes.push_back(*answers[i]);
    } else {
      const NodeFailure failure = node_failure(answers[i].error(), fleet[i]);
      survey.nodes.push_back({.name = fleet[i].name(), .machine = {}, .failure = failure});
    }
  }
  return survey;
}

Survey survey_here() {
  SurveyedNode node = survey_this_node({.name = "here"});
  if (!node.machine->hostname.empty()) node.name = node.machine->hostname;
  Survey facts;
  facts.nodes.push_back(std::move(node));
  return facts;
}

Survey survey_captures(const std::vector<std::string>& folders, const std::optional<Cluster>& cluster) {
  Survey facts{.cluster = cluster};
  std::vector<std::string> names;
  for (const ClusterNode& node : cluster ? cluster->nodes : std::vector<ClusterNode>{}) names.push_back(node.name);
  for (const std::string& folder : folders) {
    SurveyedNode node{.name = {}, .machine = probe_machine(load_capture(folder))};
    node.name =
        node.machine->hostname.empty() ? std::filesystem::path(folder).filename().native() : node.machine->hostname;
    for (const SurveyedNode& other : facts.nodes) {
      if (other.name == node.name) {
        throw Error(ErrorCode::kUsage, fmt::format("two captures are of '{}'", printable(node.name, 60)),
                    "each --root names another machine");
      }
    }
    if (cluster && std::find(names.begin(), names.end(), node.name) == names.end()) {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("'{}' is a capture of '{}', which is no node of the cluster file", printable(folder, 80),
                      printable(node.name, 60)),
          fmt::format("its nodes are {}; without --cluster captures are checked on their own", fmt::join(names, ", ")));
    }
    facts.nodes.push_back(std::move(node));
  }
  // The others of the cluster file were not looked at.
  for (const std::string& name : names) {
    const bool given = std::any_of(facts.nodes.begin(), facts.nodes.end(),
                                   [&](const SurveyedNode& node) { return node.name == name; });
    if (!given) facts.nodes.push_back({.name = name});
  }
  return facts;
}

}  // namespace yoke
