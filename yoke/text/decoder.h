// Tokens back to bytes, one at a time: the "decoder" of a tokenizer.json. Byte-level tokens give their bytes; of Llama
// 2 kind, '▁' becomes a space, <0xE2> a byte, and the space before the first word goes. A decoder that is not known is
// kUnsupported and named. Immutable once read; what depends on the tokens before is the caller's flag.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/text_budget.h"

namespace yoke::text {

enum class TokenPlace { kFirst, kLater };  // in the text that is decoded

class Decoder {
 public:
  Decoder() = default;  // tokens are their text
  static Decoder read(const Document& document);

  void append(std::string& bytes, std::string_view token, TokenPlace place) const;

 private:
  using Step = std::function<void(std::string& token, TokenPlace place, TextBudget& budget)>;
  void add(const Document& document);
  void add_strip(const Document& document);

  std::vector<Step> steps_;
  bool fused_ = false;  // the steps after a Fuse see the whole text, of which a first token tells the start
};

}  // namespace yoke::text
