// Byte-pair encoding of one piece of text: its characters are tokens at first, and the pair that was merged earliest in
// training is merged until no known pair is left (Sennrich et al., "Neural machine translation of rare words with
// subword units", 2016). A queue of pairs keeps a piece of n characters at n log n: a Llama 2 text is one single piece.
//
// Filled once while a tokenizer is read, then only read, by any thread.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/vocabulary.h"

namespace yoke::text {

// Pairs of tokens to what they become. The rank is the order of training: lower ranks are merged first.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;
    TokenId merged;
  };
  void reserve(std::size_t merges);
  void add(TokenId left, TokenId right, TokenId merged);  // ranked after those added before; a repeated pair moves back
  const Merge* find(TokenId left, TokenId right) const;
  std::uint32_t size() const { return count_; }

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge{};
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  std::uint32_t count_ = 0;
};

struct BpeOptions {
  bool ignore_merges = false;      // a piece that is a token as a whole is not merged from its characters
  std::vector<bool> special = {};  // by id: what no piece becomes as a whole, since text must not steer the model
  bool byte_fallback = false;      // a character outside the vocabulary becomes its bytes, tokens such as <0xE2>
  bool fuse_unknown = false;       // neighbouring unknown characters are one unknown token
  std::optional<TokenId> unknown;
  std::string end_of_word;  // follows the last character of each piece, as '</w>' of CLIP
};

class Bpe {
 public:
  // The vocabulary must live as long, and hold all it will hold.
  Bpe(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options);

  // Working memory, so that a long text does not allocate for each of its pieces.
  struct Workspace {
    struct Symbol {
      TokenId id;
      std::int32_t previous;
      std::int32_t next;
    };
    struct Pair {
      std::uint32_t rank;
      std::int32_t left;
    };
    std::vector<Symbol> symbols;
    std::vector<Pair> queue;
  };

  // Appends the tokens of a piece of valid UTF-8. kInvalid where a character has no token and there is no unknown one.
  void encode(std::string_view piece, Workspace& workspace, std::vector<TokenId>& ids) const;

 private:
  bool is_special(TokenId id) const {
    const auto index = static_cast<std::size_t>(id);
    return index < options_.special.size() && options_.special[index];
  }
  void start(std::string_view piece, Workspace& workspace) const;
  void start_unknown(std::string_view character, Workspace& workspace) const;
  void queue_pair(std::int32_t left, Workspace& workspace) const;
  void merge_all(Workspace& workspace) const;

  const Vocabulary* vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  std::array<std::optional<TokenId>, 256> byte_tokens_;  // of <0x00> to <0xFF>
};

}  // namespace yoke::text
