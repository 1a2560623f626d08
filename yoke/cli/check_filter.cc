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
enum class FilterVerdict { kGoesOn, kPasses, kDrops };

struct Chain {
  std::string table, name;
  bool forwards = false;  // hooked into forwarding
  std::vector<Words> rules;
};
struct Decision {
  FilterVerdict verdict = FilterVerdict::kGoesOn;
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

// What is asked of a ruleset, and what was learnt on the way.
struct Asking {
  const std::vector<Chain>& chains;
  const std::vector<std::string>& interfaces;
  std::set<const Chain*> seen = {};  // they decided nothing, or are being asked: they would decide nothing again
  bool exceptions = false;           // a rule with other conditions accepts, or may
};

// "ip saddr 10.0.0.0/8 accept", "ct state vmap { established : accept }", "tcp dport 22 jump ssh"
bool may_accept(const Words& rule) {
  return std::any_of(rule.begin(), rule.end(), [](const std::string& word) {
    return is_one_of(word, {"accept", "jump", "goto"});
  });
}

Decision decide(const Chain& chain, Asking& asking) {
  asking.seen.insert(&chain);
  const auto told = [&](FilterVerdict verdict, std::string_view line) {
    return Decision{verdict, fmt::format("chain {} of table {}: {}", chain.name, chain.table, line)};
  };
  bool drops_at_the_end = false;
  for (const Words& rule : chain.rules) {
    if (rule[0] == "type") {
      const auto policy = std::find(rule.begin(), rule.end(), "policy");
      drops_at_the_end = policy != rule.end() && policy + 1 != rule.end() && *(policy + 1) == "drop";
      continue;
    }
    const Words end = what_it_does(rule, asking.interfaces);
    if (end.empty()) continue;
    if (end[0] == "accept") return {FilterVerdict::kPasses, ""};
    if (end[0] == "drop" || end[0] == "reject")
      return told(FilterVerdict::kDrops, fmt::format("{}", fmt::join(rule, " ")));
    if (end[0] == "return") break;
    if ((end[0] != "jump" && end[0] != "goto") || end.size() < 2) {
      asking.exceptions |= may_accept(end);
      continue;
    }
    for (const Chain& next : asking.chains) {
      if (next.table != chain.table || next.name != end[1] || asking.seen.contains(&next)) continue;
      if (Decision inner = decide(next, asking); inner.verdict != FilterVerdict::kGoesOn) return inner;
    }
  }
  return drops_at_the_end ? told(FilterVerdict::kDrops, "policy drop") : Decision{};
}

// Whether a rule of iptables lets everything pass, or all that comes or goes by our interfaces, or some of that.
enum class Accepts { kNothing, kSome, kAll };
Accepts what_it_accepts(const Words& rule, const std::vector<std::string>& interfaces) {
  if (rule.size() < 4 || rule[0] != "-A" || rule[rule.size() - 2] != "-j" || rule.back() != "ACCEPT") {
    return Accepts::kNothing;
  }
  bool is_for_all = true;
  for (std::size_t i = 2; i + 2 < rule.size(); ++i) {
    const bool is_interface = is_one_of(rule[i], {"-i", "-o"}) && rule[i - 1] != "!";
    if (!is_interface) {
      is_for_all = false;
      continue;
    }
    std::string pattern = rule[++i];
    if (pattern.ends_with('+')) pattern.back() = '*';
    if (!names_one_of(pattern, interfaces)) return Accepts::kNothing;
  }
  return is_for_all ? Accepts::kAll : Accepts::kSome;
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

void read_forward_rules(std::string_view rules, const std::vector<std::string>& interfaces, SurveyedNode& node) {
  for (const std::string& line : split(rules, '\n')) {
    const Words words = split(trim(line), ' ');
    if (words.size() == 3 && words[0] == "-P" && words[1] == "FORWARD") node.forward_policy = words[2];
    const Accepts accepts = what_it_accepts(words, interfaces);
    if (accepts == Accepts::kAll) node.forward_accepts = true;
    if (accepts == Accepts::kSome) node.forward_exceptions = true;
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

std::optional<ForwardDrop> find_forward_drop(std::string_view ruleset, const std::vector<std::string>& interfaces) {
  const std::vector<Chain> chains = chains_in(ruleset);
  // A packet must get through every chain that is hooked in: what one accepts the next may drop.
  for (const Chain& chain : chains) {
    if (!chain.forwards) continue;
    Asking asking{chains, interfaces};
    const Decision decision = decide(chain, asking);
    if (decision.verdict == FilterVerdict::kDrops) return ForwardDrop{decision.why, asking.exceptions};
  }
  return std::nullopt;
}

void read_packet_filter(SurveyedNode& node) {
  const bool forwarding = node.forward_policy.has_value();
  node.forward_policy.reset();
  if (node.paths.empty() && !forwarding) return;
  std::vector<std::string> interfaces;
  for (const PathTrial& path : node.paths) interfaces.push_back(path.interface);
  if (const auto ruleset = ask_as_root({"nft", "list", "ruleset"})) {
    node.drops_packets = has_dropping_rule(*ruleset);
    const auto drop = forwarding ? find_forward_drop(*ruleset, interfaces) : std::nullopt;
    if (drop) {
      node.forward_drop = drop->where;
      node.forward_exceptions = drop->exceptions;
    }
  }
  if (!forwarding) return;
  std::string rules;
  for (const char* chain : {"FORWARD", "DOCKER-USER"}) rules += ask_as_root({"iptables", "-S", chain}).value_or("");
  read_forward_rules(rules, interfaces, node);
}

}  // namespace yoke
