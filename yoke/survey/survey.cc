#include "yoke/survey/survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/probe/probe.h"
#include "yoke/survey/node_survey.h"

namespace yoke::survey {
namespace {

// Behind a switch every node meets every other: beyond this many, each tries only its neighbours in the file.
constexpr std::size_t kMaxAllPairs = 4;

bool are_neighbours(std::size_t a, std::size_t b, std::size_t count) {
  const std::size_t apart = a > b ? a - b : b - a;
  return apart == 1 || apart == count - 1;
}

// Addresses of a ring or mesh that are on none of the node's own cables: its neighbours' far ends, and in a ring all of
// the others.
std::vector<spec::RingProbe> far_addresses(const spec::Cluster& cluster, std::size_t node) {
  std::vector<spec::RingProbe> far;
  const std::vector<spec::Rail>& own = cluster.nodes[node].rails;
  for (std::size_t other = 0; other < cluster.nodes.size(); ++other) {
    if (other == node) continue;
    for (const spec::Rail& theirs : cluster.nodes[other].rails) {
      const bool near = std::any_of(own.begin(), own.end(), [&](const spec::Rail& rail) {
        return rail.address.network() == theirs.address.network();
      });
      if (!near) far.push_back({.peer = cluster.nodes[other].name, .address = theirs.address.address});
    }
  }
  return far;
}

// What ssh itself refuses shows at the login; whatever a node does not let us do after it is something else.
spec::NodeFailure node_failure(const Error& error, const fleet::Node& node) {
  spec::NodeFailureKind kind = spec::NodeFailureKind::kOther;
  if (error.code() == ErrorCode::kPermission && !node.logged_in()) kind = spec::NodeFailureKind::kAsks;
  if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kTimeout) {
    kind = spec::NodeFailureKind::kUnreachable;
  }
  return {kind, error.message(), error.hint()};
}

spec::SurveyedNode survey_node(fleet::Node& node, const spec::SurveyedNode& questions, Seconds timeout) {
  spec::SurveyedNode answer = from_json<spec::SurveyedNode>(node.ask("survey", spec::to_json(questions), timeout));
  answer.name = node.name();
  if (!node.is_here()) answer.clock_ahead = node.clock_ahead();
  return answer;
}

}  // namespace

fleet::NodeOptions survey_login(Seconds timeout) {
  return {.ssh = {.connect_timeout = timeout, .login_timeout = timeout, .fresh_login = true}};
}

std::vector<spec::SurveyedNode> questions_for(const spec::Cluster& cluster) {
  const spec::Fabric fabric = cluster.fabric.value_or(spec::Fabric{});
  const std::size_t count = cluster.nodes.size();
  std::vector<spec::SurveyedNode> questions;
  for (std::size_t i = 0; i < count; ++i) {
    spec::SurveyedNode node{.name = cluster.nodes[i].name};
    if (spec::is_ring_or_mesh(fabric.topology) && count > 2) {
      if (fabric.topology == spec::Topology::kRing) node.forward_policy = "?";  // nobody forwards in a mesh
      node.far = far_addresses(cluster, i);
    }
    for (std::size_t j = 0; j < count; ++j) {
      if (count > kMaxAllPairs && i != j && !are_neighbours(i, j, count)) continue;
      node.names.push_back({.name = cluster.nodes[j].name, .addresses = {}});
      if (i == j) continue;
      for (const spec::Rail& ours : cluster.nodes[i].rails) {
        for (const spec::Rail& theirs : cluster.nodes[j].rails) {
          if (ours.address.network() != theirs.address.network()) continue;
          node.paths.push_back({.interface = ours.interface,
                                .peer = cluster.nodes[j].name,
                                .peer_address = theirs.address.address,
                                .large_size = fabric.mtu});
          break;  // where both rails are in one network, each meets one end
        }
      }
    }
    questions.push_back(std::move(node));
  }
  return questions;
}

spec::Survey survey_nodes(fleet::Fleet& fleet, const spec::Cluster& cluster, Seconds timeout, Canary canary) {
  std::vector<spec::SurveyedNode> questions = questions_for(cluster);
  for (spec::SurveyedNode& node : questions) {
    if (canary == Canary::kMeasured) node.canary.emplace();
  }
  const auto answers = fleet.each("looking at the nodes", [&](fleet::Node& node, std::size_t i) {
    return survey_node(node, questions.at(i), timeout);
  });
  spec::Survey survey{.cluster = cluster};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) {
      survey.nodes.push_back(*answers[i]);
    } else {
      const spec::NodeFailure failure = node_failure(answers[i].error(), fleet[i]);
      survey.nodes.push_back({.name = fleet[i].name(), .machine = {}, .failure = failure});
    }
  }
  return survey;
}

spec::Survey survey_here(Canary canary) {
  spec::SurveyedNode question{.name = "here"};
  if (canary == Canary::kMeasured) question.canary.emplace();
  spec::SurveyedNode node = survey_this_node(question);
  if (!node.machine->hostname.empty()) node.name = node.machine->hostname;
  spec::Survey facts;
  facts.nodes.push_back(std::move(node));
  return facts;
}

spec::Survey survey_captures(const std::vector<std::string>& folders, const std::optional<spec::Cluster>& cluster) {
  spec::Survey facts{.cluster = cluster};
  std::vector<std::string> names;
  for (const spec::ClusterNode& node : cluster ? cluster->nodes : std::vector<spec::ClusterNode>{})
    names.push_back(node.name);
  for (const std::string& folder : folders) {
    spec::SurveyedNode node{.name = {}, .machine = probe::probe_machine(probe::load_capture(folder))};
    node.name =
        node.machine->hostname.empty() ? std::filesystem::path(folder).filename().native() : node.machine->hostname;
    for (const spec::SurveyedNode& other : facts.nodes) {
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
                                   [&](const spec::SurveyedNode& node) { return node.name == name; });
    if (!given) facts.nodes.push_back({.name = name});
  }
  return facts;
}

}  // namespace yoke::survey
