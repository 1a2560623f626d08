// The bytes of all tokens of a vocabulary as a tree, flat in preorder: walked along with a grammar it tells in one pass
// which tokens may come next. A special token is kSpecialMark and its text; tokens without bytes are not in it.
// Immutable once made.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/text/tokenizer.h"

namespace yoke::text {

class TokenTrie {
 public:
  struct Node {
    std::uint8_t byte = 0;
    std::uint16_t depth = 0;           // 1: the first byte
    std::uint32_t skip = 0;            // the next node that is not below this one
    std::uint32_t first = 0, end = 0;  // of ids(): the tokens that end here
  };

  // `is_first`: as tokens stand at the beginning of a text, where some tokenizers drop a blank.
  enum class Place { kFirst, kLater };
  TokenTrie(const Tokenizer& tokenizer, Place place);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<TokenId>& ids() const { return ids_; }
  const std::string& bytes(TokenId id) const { return bytes_[static_cast<std::size_t>(id)]; }
  std::size_t vocabulary() const { return bytes_.size(); }
  std::size_t depth() const { return depth_; }

 private:
  std::vector<std::string> bytes_;  // of each token
  std::vector<Node> nodes_;
  std::vector<TokenId> ids_;
  std::size_t depth_ = 0;
};

}  // namespace yoke::text
