// Which tokens an answer may go on with. A GrammarMasks belongs to one grammar and one vocabulary and remembers what it
// has found out, for all answers with that grammar; a GrammarMatcher is one answer.
//
//   GrammarMatcher matcher(masks);
//   matcher.add(id);                              // each token of the answer
//   std::vector<std::uint32_t> allowed = matcher.allowed(stop_ids);       // a bit for each id
//
// States of the automaton are made when they are first met; a mask is one walk over the tree of tokens (about 5 ms for
// 128,000 tokens) and is kept, so that the inside of a string costs nothing. One thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "yoke/text/grammar.h"
#include "yoke/text/token_trie.h"

namespace yoke::text {

// A tokenizer's trees; made once for all grammars.
struct TokenTries {
  explicit TokenTries(const Tokenizer& tokenizer)
      : first(tokenizer, TokenTrie::Place::kFirst), later(tokenizer, TokenTrie::Place::kLater) {}
  TokenTrie first, later;
};

class GrammarMasks {
 public:
  using State = std::int32_t;
  static constexpr State kDead = -1;

  GrammarMasks(Grammar grammar, std::shared_ptr<const TokenTries> tries);

  State start();
  State step(State state, std::uint8_t byte);  // kDead where no text goes on so
  State step(State state, std::string_view bytes);
  bool accepts(State state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  // The tokens that may follow; the mask is good until the next call.
  const std::vector<std::uint32_t>& mask(State state, TokenTrie::Place place);
  const TokenTries& tries() const { return *tries_; }
  bool is_large() const { return states_.size() > 25'000; }  // another answer begins better with a new one

 private:
  // Where in the grammar: a node, and what comes after the rules that it is in.
  using Config = std::uint64_t;
  struct Stack {
    std::int32_t back_to = 0;
    std::int32_t parent = 0;
  };
  struct StateInfo {
    std::vector<Config> configs;
    bool accepts = false;
    std::array<State, 256> next;  // kUnknown: not looked at yet
  };
  struct ConfigsHash {
    std::size_t operator()(const std::vector<Config>& configs) const;
  };

  std::int32_t pushed(std::int32_t back_to, std::int32_t parent);
  State intern(const std::vector<Config>& from);
  bool is_tail(std::int32_t node) const;

  const Grammar grammar_;
  const std::shared_ptr<const TokenTries> tries_;
  std::int64_t work_ = 0;  // for the mask at hand
  std::vector<Stack> stacks_;
  std::unordered_map<std::uint64_t, std::int32_t> stack_ids_;
  std::vector<StateInfo> states_;
  std::unordered_map<std::vector<Config>, State, ConfigsHash> ids_;
  std::unordered_map<State, std::vector<std::uint32_t>> masks_[2];
};

class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<GrammarMasks> masks) : masks_(std::move(masks)), state_(masks_->start()) {}

  // Error(kInvalid) where the grammar does not allow it.
  void add(TokenId id);
  // Where the answer may end, `stop_ids` are allowed too.
  std::vector<std::uint32_t> allowed(std::span<const TokenId> stop_ids);
  bool may_end() const { return masks_->accepts(state_); }

 private:
  std::shared_ptr<GrammarMasks> masks_;
  GrammarMasks::State state_;
  TokenTrie::Place place_ = TokenTrie::Place::kFirst;
};

}  // namespace yoke::text
