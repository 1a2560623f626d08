#include "yoke/survey/node_survey.h"

#include <algorithm>
#include <future>

#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/probe/probe.h"
#include "yoke/survey/packet_filter.h"
#include "yoke/survey/trials.h"

namespace yoke {
namespace {

using namespace literals;

// As the C library resolves it, but with a deadline, which it does not have itself.
void resolve(NameTrial& trial) {
  const auto outcome = try_to([&] { return run({.argv = {"getent", "ahostsv4", trial.name}, .timeout = 2_s}); });
  if (!outcome || !outcome->ok()) return;
  for (const std::string& line : split(outcome->out, '\n')) {
    const auto address = parse_ipv4(line.substr(0, line.find(' ')));
    const auto known = [&](Ipv4 a) {
      return std::find(trial.addresses.begin(), trial.addresses.end(), a) != trial.addresses.end();
    };
    if (address && !known(*address)) trial.addresses.push_back(*address);
  }
}

}  // namespace

SurveyedNode survey_this_node(const SurveyedNode& questions) {
  SurveyedNode node = questions;
  std::vector<std::future<void>> trials;
  for (PathTrial& path : node.paths) trials.push_back(std::async(std::launch::async, [&path] { try_path(path); }));
  for (FarTrial& far : node.far) trials.push_back(std::async(std::launch::async, [&far] { try_far(far); }));
  for (NameTrial& name : node.names) trials.push_back(std::async(std::launch::async, [&name] { resolve(name); }));
  node.machine = probe_machine(sources_here());
  read_packet_filter(node);
  if (!node.far.empty()) node.ring_settings = read_ring_settings(DiskTree(), node.paths);
  for (std::future<void>& trial : trials) trial.get();
  for (PathTrial& path : node.paths) ask_routes(path, *node.machine);
  return node;
}

Document answer_survey(const Document& question, AgentContext&) {
  return to_json(survey_this_node(surveyed_node_from_json(question)));
}

}  // namespace yoke
