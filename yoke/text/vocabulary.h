// The tokens of a model by id and by text. Texts lie in one block and ids in one table: 128,000 tokens take about 3 MB.
// Filled once while a tokenizer is read, then only read, by any thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::text {

using TokenId = std::int32_t;

class Vocabulary {
 public:
  // Larger ids than any model has are refused before memory is taken for them.
  static constexpr TokenId kMaxId = (1 << 22) - 1;

  // False where the id is taken by another text, or the text by another id. Adding the same pair again changes nothing.
  bool add(std::string_view text, TokenId id);
  void reserve(std::size_t tokens);

  std::optional<TokenId> find(std::string_view text) const;
  // Ids run from 0 to size() - 1; there may be holes.
  TokenId size() const { return static_cast<TokenId>(entries_.size()); }
  bool contains(TokenId id) const;
  std::string_view text(TokenId id) const;  // the id must be there

 private:
  struct Entry {
    std::uint32_t begin = 0;
    std::uint32_t length = kHole;
  };
  static constexpr std::uint32_t kHole = 0xFFFFFFFF;
  static constexpr TokenId kFree = -1;

  std::size_t slot_of(std::string_view text) const;  // where it is, or the free slot where it would be
  void grow(std::size_t slots);

  std::string texts_;
  std::vector<Entry> entries_;
  std::vector<TokenId> slots_;  // open addressing, a power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace yoke::text
