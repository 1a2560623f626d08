#include "yoke/cli/check_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

using namespace literals;

using Words = std::vector<std::string>;

// What a rule without conditions, or for our interfaces, decides. Of others it is not known whether they match.
enum class Verdict { kGoesOn, kPasses, kDrops };

struct Chain {
  std::string table, name;
  bool forwards = false;  // hooked into forwarding
  std::vector<Words> rules;
};
struct Decision {
  Verdict verdict = Verdict::kGoesOn;
  std::string why;
};

bool is_one_of(const std::string& word, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

// Without quotes and commas, the semicolons behind what stands in one line, and counters, which decide nothing.
Words rule_words(std::string_view line) {
  Words words;
  const Words raw = split(trim(line), ' ');
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == "counter") {
      if (i + 4 < raw.size() && raw[i + 1] == "packets") i += 4;
      continue;
    }
    std::string word = raw[i];
    std::erase_if(word, [](char c) { return c == '"' || c == ';' || c == ','; });
    if (word == "comment") break;  // the rest is a person's
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

std::vector<Chain> chains_in(std::string_view ruleset) {
  std::vector<Chain> chains;
  std::string table;
  bool inside = false;
  for (const std::string& line : split(ruleset, '\n')) {
    const Words words = rule_words(line);
    if (words.empty()) continue;
    if (words[0] == "table" && words.size() >= 4) {
      table = words[1] + " " + words[2];
    } else if (words[0] == "chain" && words.size() >= 3) {
      chains.push_back({.table = table, .name = words[1]});
      inside = true;
    } else if (words[0] == "}") {
      inside = false;
    } else if (inside) {
      const auto hook = std::find(words.begin(), words.end(), "hook");
      if (hook != words.end() && hook + 1 != words.end() && *(hook + 1) == "forward") chains.back().forwards = true;
      chains.back().rules.push_back(words);
    }
  }
  return chains;
}

// "enp1s0f0np0", or "enp*" for all that begin so.
bool names_one_of(const std::string& pattern, const std::vector<std::string>& interfaces) {
  if (!pattern.ends_with('*')) return is_one_of(pattern, interfaces);
  const std::string_view prefix(pattern.data(), pattern.size() - 1);
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const auto& name) { return name.starts_with(prefix); });
}

// The rule's end where its only conditions are interfaces, ours among them; empty where it has others.
Words what_it_does(Words rule, const std::vector<std::string>& interfaces) {
  while (rule.size() > 2 && is_one_of(rule[0], {"iifname", "oifname", "iif", "oif"})) {
    const bool is_set = rule[1] == "{";
    const auto last = is_set ? std::find(rule.begin(), rule.end(), "}") : rule.begin() + 1;
    if (last == rule.end()) return {};
    const bool ours =
        std::any_of(rule.begin() + 1, last + 1, [&](const auto& w) { return names_one_of(w, interfaces); });
    if (!ours) return {};
    rule.erase(rule.begin(), last + 1);
  }
  return rule;
}

// `seen` are the chains that decided nothing, or are being asked: they would decide nothing again.
Decision decide(const std::vector<Chain>& chains, const Chain& chain, const std::vector<std::string>& interfaces,
                std::set<const Chain*>& seen) {
  seen.insert(&chain);
  const auto told = [&](Verdict verdict, std::string_view line) {
    return Decision{verdict, fmt::format("chain {} of table {}: {}", chain.name, chain.table, line)};
  };
  bool drops_at_the_end = false;
  for (const Words& rule : chain.rules) {
    if (rule[0] == "type") {
      const auto policy = std::find(rule.begin(), rule.end(), "policy");
      drops_at_the_end = policy != rule.end() && policy + 1 != rule.end() && *(policy + 1) == "drop";
      continue;
    }
    const Words end = what_it_does(rule, interfaces);
    if (end.empty()) continue;
    if (end[0] == "accept") return {Verdict::kPasses, ""};
    if (end[0] == "drop" || end[0] == "reject") return told(Verdict::kDrops, fmt::format("{}", fmt::join(rule, " ")));
    if (end[0] == "return") break;
    if ((end[0] != "jump" && end[0] != "goto") || end.size() < 2) continue;
    for (const Chain& next : chains) {
      if (next.table != chain.table || next.name != end[1] || seen.contains(&next)) continue;
      if (Decision inner = decide(chains, next, interfaces, seen); inner.verdict != Verdict::kGoesOn) return inner;
    }
  }
  return drops_at_the_end ? told(Verdict::kDrops, "policy drop") : Decision{};
}

// What only root may ask; nothing where nobody here may.
std::optional<std::string> ask_as_root(Words argv) {
  if (!is_installed(argv[0])) return std::nullopt;
  if (geteuid() != 0) {
    if (!is_installed("sudo")) return std::nullopt;
    argv.insert(argv.begin(), {"sudo", "-n"});
  }
  const auto outcome = try_to([&] { return run({.argv = argv, .timeout = 2_s}); });
  return outcome && outcome->ok() ? std::optional(outcome->out) : std::nullopt;
}

}  // namespace

void read_forward_rules(std::string_view rules, const std::vector<std::string>& interfaces, CheckedNode& node) {
  for (const std::string& line : split(rules, '\n')) {
    const Words words = split(trim(line), ' ');
    if (words.size() == 3 && words[0] == "-P" && words[1] == "FORWARD") node.forward_policy = words[2];
    if (words.size() < 4 || words[0] != "-A" || words[words.size() - 1] != "ACCEPT") continue;
    const bool every = words.size() == 4;  // -A CHAIN -j ACCEPT
    const bool ours = words.size() == 6 && words[2] == "-i" && is_one_of(words[3], interfaces);
    if (every || ours) node.forward_accepts = true;
  }
}

bool has_dropping_rule(std::string_view ruleset) {
  for (const std::string& line : split(ruleset, '\n')) {
    for (const std::string& word : rule_words(line)) {
      if (word == "drop" || word == "reject") return true;
    }
  }
  return false;
}

std::optional<std::string> find_forward_drop(std::string_view ruleset, const std::vector<std::string>& interfaces) {
  const std::vector<Chain> chains = chains_in(ruleset);
  // A packet must get through every chain that is hooked in: what one accepts the next may drop.
  for (const Chain& chain : chains) {
    if (!chain.forwards) continue;
    std::set<const Chain*> seen;
    const Decision decision = decide(chains, chain, interfaces, seen);
    if (decision.verdict == Verdict::kDrops) return decision.why;
  }
  return std::nullopt;
}

void read_packet_filter(CheckedNode& node) {
  const bool forwarding = node.forward_policy.has_value();
  node.forward_policy.reset();
  if (node.paths.empty() && !forwarding) return;
  std::vector<std::string> interfaces;
  for (const PathTrial& path : node.paths) interfaces.push_back(path.interface);
  if (const auto ruleset = ask_as_root({"nft", "list", "ruleset"})) {
    node.drops_packets = has_dropping_rule(*ruleset);
    if (forwarding) node.forward_drop = find_forward_drop(*ruleset, interfaces);
  }
  if (!forwarding) return;
  std::string rules;
  for (const char* chain : {"FORWARD", "DOCKER-USER"}) rules += ask_as_root({"iptables", "-S", chain}).value_or("");
  read_forward_rules(rules, interfaces, node);
}

}  // namespace yoke
