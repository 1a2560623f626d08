#include "yoke/text/grammar_matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "yoke/base/error.h"

namespace yoke::text {
namespace {

constexpr GrammarMasks::State kUnknown = -2;
constexpr std::size_t kMaxGrammarStates = 50'000;  // about 1 KB each
constexpr std::size_t kMaxClosure = 20'000;
constexpr std::int64_t kMaxWork = 20'000'000;  // edges looked at for one mask: a fraction of a second
constexpr std::size_t kMaxMasks = 256;
constexpr std::int32_t kEmptyStack = 0;

[[noreturn]] void refuse_size() {
  throw Error(ErrorCode::kInvalid, "the schema of the answer is too complex", "use a simpler one");
}

}  // namespace

GrammarMasks::GrammarMasks(Grammar grammar, std::shared_ptr<const TokenTries> tries)
    : grammar_(std::move(grammar)), tries_(std::move(tries)), stacks_(1) {
  if (intern({static_cast<Config>(grammar_.rules.front()) << 32}) == kDead) {
    throw Error(ErrorCode::kInvalid, "no answer satisfies the schema: it refers to itself and ends nowhere");
  }
}

std::size_t GrammarMasks::ConfigsHash::operator()(const std::vector<Config>& configs) const {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const Config config : configs) hash = (hash ^ config) * 0xff51afd7ed558ccdULL, hash ^= hash >> 32;
  return hash;
}

std::int32_t GrammarMasks::pushed(std::int32_t back_to, std::int32_t parent) {
  const std::uint64_t key = static_cast<std::uint64_t>(back_to) << 32 | static_cast<std::uint32_t>(parent);
  const auto [known, is_new] = stack_ids_.emplace(key, static_cast<std::int32_t>(stacks_.size()));
  if (is_new) stacks_.push_back({back_to, parent});
  return known->second;
}

// Nothing but the end of its rule follows: there is no need to come back to it.
bool GrammarMasks::is_tail(std::int32_t node) const {
  const Grammar::Node& one = grammar_.nodes[static_cast<std::size_t>(node)];
  return one.is_end && one.edges.empty() && one.free.empty() && one.calls.empty();
}

// The state of all places that are reached from these without a byte.
GrammarMasks::State GrammarMasks::intern(const std::vector<Config>& from) {
  std::vector<Config> work = from, kept;
  std::unordered_set<Config> seen(from.begin(), from.end());
  bool accepts = false;
  const auto add = [&](std::int32_t node, std::int32_t stack) {
    const Config config = static_cast<Config>(node) << 32 | static_cast<std::uint32_t>(stack);
    if (seen.insert(config).second) work.push_back(config);
  };
  while (!work.empty()) {
    const Config config = work.back();
    work.pop_back();
    ++work_;
    if (seen.size() > kMaxClosure) refuse_size();  // a rule that calls itself before any byte
    const auto stack = static_cast<std::int32_t>(config & 0xFFFFFFFF);
    const Grammar::Node& node = grammar_.nodes[static_cast<std::size_t>(config >> 32)];
    if (!node.edges.empty()) kept.push_back(config);
    for (const std::int32_t to : node.free) add(to, stack);
    for (const Grammar::Call& call : node.calls) {
      add(grammar_.rules[static_cast<std::size_t>(call.rule)], is_tail(call.to) ? stack : pushed(call.to, stack));
    }
    if (!node.is_end) continue;
    if (stack == kEmptyStack) {
      accepts = true;
    } else {
      const Stack top = stacks_[static_cast<std::size_t>(stack)];
      add(top.back_to, top.parent);
    }
  }
  if (kept.empty() && !accepts) return kDead;
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (accepts) kept.push_back(~Config{0});  // tells it from the same state that does not accept
  const auto [known, is_new] = ids_.emplace(kept, static_cast<State>(states_.size()));
  if (!is_new) return known->second;
  if (states_.size() >= kMaxGrammarStates) refuse_size();
  if (accepts) kept.pop_back();
  StateInfo& info = states_.emplace_back(StateInfo{.configs = std::move(kept), .accepts = accepts, .next = {}});
  info.next.fill(kUnknown);
  return known->second;
}

GrammarMasks::State GrammarMasks::start() { return 0; }

GrammarMasks::State GrammarMasks::step(State state, std::uint8_t byte) {
  if (const State known = states_[static_cast<std::size_t>(state)].next[byte]; known != kUnknown) return known;
  std::vector<Config> reached;
  for (const Config config : states_[static_cast<std::size_t>(state)].configs) {
    const auto& edges = grammar_.nodes[static_cast<std::size_t>(config >> 32)].edges;
    work_ += std::ssize(edges);
    for (const Grammar::Edge& edge : edges) {
      if (byte < edge.low || byte > edge.high) continue;
      reached.push_back(static_cast<Config>(edge.to) << 32 | (config & 0xFFFFFFFF));
    }
  }
  if (work_ > kMaxWork) refuse_size();  // all other answers would wait for it
  const State next = reached.empty() ? kDead : intern(reached);
  states_[static_cast<std::size_t>(state)].next[byte] = next;
  return next;
}

GrammarMasks::State GrammarMasks::step(State state, std::string_view bytes) {
  for (const char byte : bytes) {
    if (state == kDead) return kDead;
    state = step(state, static_cast<std::uint8_t>(byte));
  }
  return state;
}

const std::vector<std::uint32_t>& GrammarMasks::mask(State state, TokenTrie::Place place) {
  auto& masks = masks_[place == TokenTrie::Place::kFirst ? 0 : 1];
  if (const auto known = masks.find(state); known != masks.end()) return known->second;
  if (masks.size() >= kMaxMasks) masks.clear();
  work_ = 0;
  const TokenTrie& trie = place == TokenTrie::Place::kFirst ? tries_->first : tries_->later;
  std::vector<std::uint32_t> mask((trie.vocabulary() + 31) / 32);
  std::vector<State> at(trie.depth() + 1);  // after so many bytes of the token
  at[0] = state;
  const auto& nodes = trie.nodes();
  for (std::size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const State next = step(at[node.depth - 1U], node.byte);
    if (next == kDead) {
      i = node.skip;
      continue;
    }
    at[node.depth] = next;
    for (std::uint32_t k = node.first; k < node.end; ++k) {
      const auto id = static_cast<std::uint32_t>(trie.ids()[k]);
      mask[id / 32] |= 1U << id % 32;
    }
    ++i;
  }
  return masks.emplace(state, std::move(mask)).first->second;
}

void GrammarMatcher::add(TokenId id) {
  const TokenTrie& trie = place_ == TokenTrie::Place::kFirst ? masks_->tries().first : masks_->tries().later;
  const bool is_known = id >= 0 && static_cast<std::size_t>(id) < trie.vocabulary() && !trie.bytes(id).empty();
  const GrammarMasks::State next = is_known ? masks_->step(state_, trie.bytes(id)) : GrammarMasks::kDead;
  if (next == GrammarMasks::kDead) {
    throw Error(ErrorCode::kInvalid, fmt::format("the answer has the token {}, which its grammar does not allow", id));
  }
  state_ = next;
  place_ = TokenTrie::Place::kLater;
}

std::vector<std::uint32_t> GrammarMatcher::allowed(std::span<const TokenId> stop_ids) {
  std::vector<std::uint32_t> mask = masks_->mask(state_, place_);
  if (!may_end()) return mask;
  for (const TokenId id : stop_ids) {
    const auto word = static_cast<std::size_t>(id) / 32;
    if (id < 0) continue;
    if (word >= mask.size()) mask.resize(word + 1);
    mask[word] |= 1U << static_cast<std::uint32_t>(id) % 32;
  }
  return mask;
}

}  // namespace yoke::text
