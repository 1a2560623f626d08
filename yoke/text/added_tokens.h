// Tokens that are looked for in the text itself, before anything else is done to it: <|eot_id|> and the like. A trie
// finds the longest at each place. Those marked special steer a model, so that they are found only where the text may
// steer: see Origin. Filled once while a tokenizer is read, then only read, by any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/pattern.h"
#include "yoke/text/segment.h"
#include "yoke/text/text_budget.h"
#include "yoke/text/vocabulary.h"

namespace yoke::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // not inside a word
  bool strip_left = false;   // swallows the white space before it
  bool strip_right = false;
  bool normalized = false;  // looked for in the normalized text
  bool special = false;
};

// kInvalid where it has no text, one of more than limits::kAddedTokenBytes, or an impossible id.
AddedToken read_added_token(const Document& document);

class AddedTokens {
 public:
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  struct Found {
    Match range;  // with the white space that the token swallows
    TokenId id;
  };
  // From left to right, without overlap. Special tokens are found where all their bytes may steer.
  std::vector<Found> find_all(std::string_view text, const OriginRanges& origins, TextBudget& budget) const;

 private:
  static constexpr std::int32_t kNone = -1;
  struct Node {
    std::int32_t sibling = kNone;
    std::int32_t child = kNone;
    std::int32_t token = kNone;  // index of the token that ends here
    char byte = 0;
  };
  std::int32_t child(std::int32_t node, char byte) const;
  const AddedToken* longest(std::string_view text, std::size_t at, const OriginRanges& origins) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = {Node{}};
};

}  // namespace yoke::text
