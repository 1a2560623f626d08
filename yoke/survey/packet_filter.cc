#include "yoke/survey/packet_filter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "yoke/base/json.h"
#include "yoke/base/process.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"

namespace yoke::survey {
namespace {

using namespace literals;

using Words = std::vector<std::string>;

// What a rule without conditions, or for our interfaces, decides. Of others it is not known whether they match.
enum class FilterVerdict { kGoesOn, kPasses, kDrops };

struct Chain {
  std::string table, name;
  bool forwards = false;  // hooked into forwarding
  bool drops_at_the_end = false;
  std::vector<const Document*> rules = {};  // their expressions, a list each
};
struct Decision {
  FilterVerdict verdict = FilterVerdict::kGoesOn;
  std::string why;
};

bool is_one_of(const std::string& word, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

std::string text_at(const Document& map, const char* key) {
  const Document* found = map.find(key);
  return found ? found->text : "";
}

std::string table_of(const Document& entry) { return text_at(entry, "family") + " " + text_at(entry, "table"); }

std::vector<Chain> chains_in(const Document& ruleset) {
  std::vector<Chain> chains;
  const Document* entries = ruleset.find("nftables");
  if (!entries) return chains;
  for (const Document& entry : entries->items) {
    if (const Document* chain = entry.find("chain")) {
      chains.push_back({.table = table_of(*chain),
                        .name = text_at(*chain, "name"),
                        .forwards = text_at(*chain, "hook") == "forward",
                        .drops_at_the_end = text_at(*chain, "policy") == "drop"});
    }
  }
  for (const Document& entry : entries->items) {
    const Document* rule = entry.find("rule");
    const Document* expressions = rule ? rule->find("expr") : nullptr;
    if (!expressions) continue;
    for (Chain& chain : chains) {
      if (chain.table == table_of(*rule) && chain.name == text_at(*rule, "chain")) chain.rules.push_back(expressions);
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

// Each expression is a map of one key: {"match": …}, {"counter": …}, {"drop": null}.
const Document::Field* only_field(const Document& expression) {
  return expression.fields.size() == 1 ? &expression.fields.front() : nullptr;
}

// Of a match on interfaces: which condition ("iifname"), and the names.
struct InterfaceMatch {
  std::string key;
  std::vector<std::string> names;
};
std::optional<InterfaceMatch> interface_match(const Document& match) {
  const Document* left = match.find("left");
  const Document* meta = left ? left->find("meta") : nullptr;
  const Document* right = match.find("right");
  if (!meta || !right || text_at(match, "op") != "==") return std::nullopt;
  InterfaceMatch found{.key = text_at(*meta, "key"), .names = {}};
  if (!is_one_of(found.key, {"iifname", "oifname", "iif", "oif"})) return std::nullopt;
  if (const Document* set = right->find("set")) {
    for (const Document& name : set->items) found.names.push_back(name.text);
  } else if (!right->text.empty() && !right->text.starts_with('@')) {
    found.names.push_back(right->text);
  } else {
    return std::nullopt;  // a named set, whose elements may change
  }
  return found;
}

// One of these keys anywhere within: {"vmap": {… {"set": [["established", {"accept": null}]]}}}.
bool holds_key(const Document& document, const std::vector<std::string>& keys) {
  for (const auto& [key, value] : document.fields) {
    if (is_one_of(key, keys) || holds_key(value, keys)) return true;
  }
  return std::any_of(document.items.begin(), document.items.end(),
                     [&](const Document& item) { return holds_key(item, keys); });
}

// A rule as far as it concerns our interfaces.
struct RuleEnd {
  bool concerns_us = true;                   // false: for other interfaces only
  bool conditional = false;                  // it has conditions besides interfaces
  const Document::Field* verdict = nullptr;  // what follows where nothing else is asked
  std::string words;                         // "iifname enp1s0f0np0 drop"
};
RuleEnd end_of_rule(const Document& expressions, const std::vector<std::string>& interfaces) {
  RuleEnd end;
  for (const Document& expression : expressions.items) {
    const Document::Field* field = only_field(expression);
    if (!field) continue;
    const auto& [key, value] = *field;
    if (key == "counter" || key == "log") continue;  // they decide nothing
    const auto match = key == "match" ? interface_match(value) : std::nullopt;
    if (match) {
      const bool ours = std::any_of(match->names.begin(), match->names.end(),
                                    [&](const auto& name) { return names_one_of(name, interfaces); });
      if (!ours) return {.concerns_us = false};
      end.words += fmt::format("{} {} ", match->key, fmt::join(match->names, ", "));
    } else if (is_one_of(key, {"accept", "drop", "reject", "return", "jump", "goto"})) {
      end.verdict = field;
      end.words += key;
      return end;
    } else {
      end.conditional = true;
      return end;
    }
  }
  return end;
}

// What is asked of a ruleset, and what was learnt on the way.
struct Asking {
  const std::vector<Chain>& chains;
  const std::vector<std::string>& interfaces;
  std::set<const Chain*> seen = {};  // they decided nothing, or are being asked: they would decide nothing again
  bool exceptions = false;           // a rule with other conditions accepts, or may
};

Decision decide(const Chain& chain, Asking& asking) {
  asking.seen.insert(&chain);
  const auto reported = [&](FilterVerdict verdict, std::string_view line) {
    return Decision{verdict, fmt::format("chain {} of table {}: {}", chain.name, chain.table, line)};
  };
  for (const Document* rule : chain.rules) {
    const RuleEnd end = end_of_rule(*rule, asking.interfaces);
    if (end.conditional) asking.exceptions |= holds_key(*rule, {"accept", "jump", "goto"});
    if (!end.concerns_us || !end.verdict) continue;
    const std::string& verdict = end.verdict->first;
    if (verdict == "accept") return {FilterVerdict::kPasses, ""};
    if (verdict == "drop" || verdict == "reject") return reported(FilterVerdict::kDrops, end.words);
    if (verdict == "return") break;
    const std::string target = text_at(end.verdict->second, "target");
    for (const Chain& next : asking.chains) {
      if (next.table != chain.table || next.name != target || asking.seen.contains(&next)) continue;
      if (Decision inner = decide(next, asking); inner.verdict != FilterVerdict::kGoesOn) return inner;
    }
  }
  return chain.drops_at_the_end ? reported(FilterVerdict::kDrops, "policy drop") : Decision{};
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

void read_forward_rules(std::string_view rules, const std::vector<std::string>& interfaces, spec::SurveyedNode& node) {
  for (const std::string& line : split(rules, '\n')) {
    const Words words = split(trim(line), ' ');
    if (words.size() == 3 && words[0] == "-P" && words[1] == "FORWARD") node.forward_policy = words[2];
    const Accepts accepts = what_it_accepts(words, interfaces);
    if (accepts == Accepts::kAll) node.forward_accepts = true;
    if (accepts == Accepts::kSome) node.forward_exceptions = true;
  }
}

bool has_dropping_rule(const Document& ruleset) {
  const std::vector<Chain> chains = chains_in(ruleset);
  const bool by_policy =
      std::any_of(chains.begin(), chains.end(), [](const Chain& chain) { return chain.drops_at_the_end; });
  return by_policy || holds_key(ruleset, {"drop", "reject"});
}

std::optional<ForwardDrop> find_forward_drop(const Document& ruleset, const std::vector<std::string>& interfaces) {
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

void read_packet_filter(spec::SurveyedNode& node) {
  const bool forwarding = node.forward_policy.has_value();
  node.forward_policy.reset();
  if (node.paths.empty() && !forwarding) return;
  std::vector<std::string> interfaces;
  for (const spec::PathProbe& path : node.paths) interfaces.push_back(path.interface);
  if (const auto text = ask_as_root({"nft", "-j", "list", "ruleset"})) {
    const auto ruleset = try_to([&] { return parse_json(*text, "nft -j list ruleset"); });
    if (!ruleset) return;
    node.drops_packets = has_dropping_rule(*ruleset);
    const auto drop = forwarding ? find_forward_drop(*ruleset, interfaces) : std::nullopt;
    if (drop) {
      node.forward_drop = drop->where;
      node.forward_exceptions = drop->exceptions;
    }
    return;
  }
  if (!forwarding) return;
  std::string rules;
  for (const char* chain : {"FORWARD", "DOCKER-USER"}) rules += ask_as_root({"iptables", "-S", chain}).value_or("");
  read_forward_rules(rules, interfaces, node);
}

}  // namespace yoke::survey
