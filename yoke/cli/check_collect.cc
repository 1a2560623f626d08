#include "yoke/cli/check_collect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/progress.h"
#include "yoke/base/text.h"
#include "yoke/cli/check_node.h"
#include "yoke/job/node_channel.h"
#include "yoke/probe/probe.h"
#include "yoke/remote/carry.h"
#include "yoke/remote/local_shell.h"
#include "yoke/remote/ssh_shell.h"

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
enum class Stage { kLogin, kQuestions };
NodeFailure node_failure(const Error& error, Stage stage) {
  NodeFailureKind kind = NodeFailureKind::kOther;
  if (error.code() == ErrorCode::kPermission && stage == Stage::kLogin) kind = NodeFailureKind::kAsks;
  if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kTimeout) {
    kind = NodeFailureKind::kUnreachable;
  }
  return {kind, error.message(), error.hint()};
}

SurveyedNode ask(const ClusterNode& place, int index, const SurveyedNode& questions, const CollectOptions& options) {
  const bool here = is_this_machine(place, index);
  if (here) return look_at_this_node(questions);
  // What a login needs may have changed since the last one.
  SshShell shell(host_of(place),
                 {.connect_timeout = options.timeout, .login_timeout = options.timeout, .fresh_login = true});
  const auto login = try_to([&] { return shell.run({.argv = {"true"}, .timeout = options.timeout}); });
  if (!login && login.error().code() != ErrorCode::kInterrupted) {
    return {.name = place.name, .machine = {}, .failure = node_failure(login.error(), Stage::kLogin)};
  }
  const std::string program = carry_program(shell, "/proc/self/exe");
  const std::string text = print_json(to_json(questions), JsonLayout::kOneLine);
  const Outcome outcome = shell.run({.argv = {program, "check-node"}, .input = text, .timeout = options.timeout});
  const double received = wall_clock_now();
  if (!outcome.ok()) throw Error(ErrorCode::kInvalid, fmt::format("its part of the check {}", outcome.describe()));
  TimedNode answer = timed_node_from_json(parse_json(outcome.out, place.name));
  answer.node.clock_ahead = Seconds{answer.time - received};
  return std::move(answer.node);
}

SurveyedNode ask_or_fail(const ClusterNode& place, int index, const SurveyedNode& questions,
                         const CollectOptions& options) {
  const auto answer = try_to([&] { return ask(place, index, questions, options); });
  if (answer) return *answer;
  if (answer.error().code() == ErrorCode::kInterrupted) throw Error(answer.error());
  return {.name = place.name, .machine = {}, .failure = node_failure(answer.error(), Stage::kQuestions)};
}

}  // namespace

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

Survey collect_cluster(const Cluster& cluster, const CollectOptions& options) {
  const std::vector<SurveyedNode> questions = questions_for(cluster);
  std::vector<std::future<SurveyedNode>> answers;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    answers.push_back(std::async(std::launch::async, [&, i] {
      return ask_or_fail(cluster.nodes[i], static_cast<int>(i), questions[i], options);
    }));
  }
  Survey facts{.cluster = cluster};
  Progress progress("looking at the nodes", static_cast<std::int64_t>(answers.size()));
  for (auto& answer : answers) {
    while (answer.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
      progress.update(static_cast<std::int64_t>(facts.nodes.size()), cluster.nodes[facts.nodes.size()].name);
    }
    facts.nodes.push_back(answer.get());
  }
  return facts;
}

Survey collect_here() {
  SurveyedNode node = look_at_this_node({.name = "here"});
  if (!node.machine->hostname.empty()) node.name = node.machine->hostname;
  Survey facts;
  facts.nodes.push_back(std::move(node));
  return facts;
}

Survey collect_captures(const std::vector<std::string>& folders, const std::optional<Cluster>& cluster) {
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
