#include "yoke/text/token_trie.h"

#include <algorithm>

#include "yoke/text/decoder.h"
#include "yoke/text/grammar.h"

namespace yoke::text {

TokenTrie::TokenTrie(const Tokenizer& tokenizer, Place place) : bytes_(static_cast<std::size_t>(tokenizer.size())) {
  for (TokenId id = 0; id < tokenizer.size(); ++id) {
    if (!tokenizer.contains(id)) continue;
    std::string bytes = tokenizer.bytes(id, place == Place::kFirst ? TokenPlace::kFirst : TokenPlace::kLater);
    const bool is_special = tokenizer.is_special(id);
    // No character has such a byte, and it must not look like a special token's beginning.
    if (!is_special && bytes.find(kSpecialMark) != std::string::npos) bytes.clear();
    if (bytes.size() >= 0xFFFF) bytes.clear();
    bytes_[static_cast<std::size_t>(id)] = is_special && !bytes.empty() ? kSpecialMark + bytes : bytes;
    if (!bytes.empty()) ids_.push_back(id);
  }
  std::sort(ids_.begin(), ids_.end(), [&](TokenId a, TokenId b) { return this->bytes(a) < this->bytes(b); });
  std::vector<std::uint32_t> path;  // the nodes from the root to the last token
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes_[path.back()].skip = static_cast<std::uint32_t>(nodes_.size());
  };
  std::string last;
  for (std::uint32_t i = 0; i < ids_.size(); ++i) {
    const std::string& text = bytes(ids_[i]);
    const auto shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), text.begin(), text.end()).first - last.begin());
    close_to(shared);
    for (std::size_t at = shared; at < text.size(); ++at) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.byte = static_cast<std::uint8_t>(text[at]), .depth = static_cast<std::uint16_t>(at + 1)});
    }
    Node& end = nodes_[path.back()];
    if (end.first == end.end) end.first = i;
    end.end = i + 1;
    depth_ = std::max(depth_, text.size());
    last = text;
  }
  close_to(0);
}

}  // namespace yoke::text
