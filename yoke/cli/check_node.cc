#include "yoke/cli/check_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"
#include "yoke/cli/check_filter.h"
#include "yoke/cli/check_trials.h"
#include "yoke/cli/standard_input.h"
#include "yoke/probe/probe.h"

namespace yoke {

inline void read_field(const Document& document, SurveyedNode& value) { value = surveyed_node_from_json(document); }
inline void write_field(Document& document, const SurveyedNode& value) { document = to_json(value); }

template <class Visitor>
void visit_fields(Visitor& visit, TimedNode& answer) {
  visit.required("time", answer.time);
  visit.required("node", answer.node);
}

namespace {

using namespace literals;

constexpr Bytes kQuestionsMost{8 << 20};

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

SurveyedNode look_at_this_node(const SurveyedNode& questions) {
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

double wall_clock_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Document to_json(const TimedNode& answer) { return to_document(answer); }
TimedNode timed_node_from_json(const Document& document) { return from_document<TimedNode>(document); }

std::optional<int> run_check_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{"check-node"}) return std::nullopt;
  try {
    const std::string questions = read_standard_input(kQuestionsMost);
    TimedNode answer{.node = look_at_this_node(surveyed_node_from_json(parse_json(questions, "the questions")))};
    answer.time = wall_clock_now();
    fmt::print("{}\n", print_json(to_json(answer), JsonLayout::kOneLine));
    return kExitOk;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    return error.exit_status();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return info(ErrorCode::kInternal).exit_status;
  }
}

}  // namespace yoke
