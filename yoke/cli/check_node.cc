#include "yoke/cli/check_node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/cli/standard_input.h"
#include "yoke/probe/probe.h"

namespace yoke {

inline void read_field(const Document& document, CheckedNode& value) { value = checked_node_from_json(document); }
inline void write_field(Document& document, const CheckedNode& value) { document = to_json(value); }

template <class Visitor>
void visit_fields(Visitor& visit, TimedNode& answer) {
  visit.required("time", answer.time);
  visit.required("node", answer.node);
}

namespace {

using namespace literals;

constexpr int kHeaders = 28;  // of IPv4 and ICMP
// A port that nobody serves: a machine that lets connections through refuses it, a firewall swallows it.
constexpr int kUnservedPort = 29499;
constexpr Bytes kQuestionsMost{8 << 20};

// A lost packet is no closed way: each trial has several attempts, far longer than any answer of a neighbour takes.
constexpr int kPings = 2;
constexpr int kConnections = 3;
constexpr const char* kPingWait = "0.5";
constexpr Seconds kConnectionWait{0.4};

enum class PingSize { kSmall, kLarge };
bool ping(const PathTrial& path, PingSize size) {
  std::vector<std::string> words = {"ping", "-n", "-q", "-c", "1", "-W", kPingWait, "-I", path.interface};
  if (size == PingSize::kLarge) {
    words.insert(words.end(), {"-M", "do", "-s", std::to_string(path.large_size - kHeaders)});
  }
  words.push_back(to_string(path.peer_address));
  for (int i = 0; i < kPings; ++i) {
    if (run({.argv = words, .timeout = 3_s}).ok()) return true;
  }
  return false;
}

// Nothing where this machine does not even try, as without the right to choose the interface.
std::optional<bool> connects_once(const PathTrial& path) {
  try {
    connect_tcp({to_string(path.peer_address), kUnservedPort}, {.device = path.interface},
                Deadline::after(kConnectionWait));
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kTimeout) return false;
    // A refusal is an answer; "no route" is none.
    const bool refused = std::string_view(error.what()).find("refused") != std::string_view::npos;
    return refused ? std::optional(true) : std::nullopt;
  }
}

std::optional<bool> connects(const PathTrial& path) {
  std::optional<bool> answered = false;
  for (int i = 0; i < kConnections && answered == false; ++i) answered = connects_once(path);
  return answered;
}

void try_path(PathTrial& path) {
  const bool can_ping = is_installed("ping") && path.large_size > kHeaders;
  auto large = std::async(std::launch::async, [&] { return can_ping && ping(path, PingSize::kLarge); });
  auto connected = std::async(std::launch::async, [&] { return connects(path); });
  if (can_ping) path.small = ping(path, PingSize::kSmall);
  const bool large_passed = large.get();
  if (can_ping) path.large = large_passed;
  path.connects = connected.get();
}

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

void ask_forward_policy(CheckedNode& node) {
  node.forward_policy.reset();
  if (geteuid() != 0 || !is_installed("iptables")) return;
  std::string rules;
  for (const char* chain : {"FORWARD", "DOCKER-USER"}) {
    const auto outcome = try_to([&] { return run({.argv = {"iptables", "-S", chain}, .timeout = 2_s}); });
    if (outcome && outcome->ok()) rules += outcome->out;
  }
  std::vector<std::string> interfaces;
  for (const PathTrial& path : node.paths) interfaces.push_back(path.interface);
  read_forward_rules(rules, interfaces, node);
}

// Whether any rule of the kernel's packet filter, whoever made it, drops or rejects; nothing where it cannot be asked.
std::optional<bool> drops_packets() {
  if (geteuid() != 0 || !is_installed("nft")) return std::nullopt;
  const auto outcome = try_to([] { return run({.argv = {"nft", "list", "ruleset"}, .timeout = 2_s}); });
  if (!outcome || !outcome->ok()) return std::nullopt;
  for (const std::string& line : split(outcome->out, '\n')) {
    for (const std::string& word : split(trim(line), ' ')) {
      if (word == "drop" || word == "drop;" || word == "reject") return true;
    }
  }
  return false;
}

}  // namespace

void read_forward_rules(std::string_view rules, const std::vector<std::string>& interfaces, CheckedNode& node) {
  for (const std::string& line : split(rules, '\n')) {
    const std::vector<std::string> words = split(trim(line), ' ');
    if (words.size() == 3 && words[0] == "-P" && words[1] == "FORWARD") node.forward_policy = words[2];
    if (words.size() < 4 || words[0] != "-A" || words[words.size() - 1] != "ACCEPT") continue;
    const bool every = words.size() == 4;  // -A CHAIN -j ACCEPT
    const bool ours = words.size() == 6 && words[2] == "-i" &&
                      std::find(interfaces.begin(), interfaces.end(), words[3]) != interfaces.end();
    if (every || ours) node.forward_accepts = true;
  }
}

CheckedNode look_at_this_node(const CheckedNode& questions) {
  CheckedNode node = questions;
  std::vector<std::future<void>> trials;
  for (PathTrial& path : node.paths) trials.push_back(std::async(std::launch::async, [&path] { try_path(path); }));
  for (NameTrial& name : node.names) trials.push_back(std::async(std::launch::async, [&name] { resolve(name); }));
  node.machine = probe_machine(sources_here());
  if (node.forward_policy) ask_forward_policy(node);
  if (!node.paths.empty()) node.drops_packets = drops_packets();
  for (std::future<void>& trial : trials) trial.get();
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
    TimedNode answer{.node = look_at_this_node(checked_node_from_json(parse_json(questions, "the questions")))};
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
