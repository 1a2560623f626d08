#include "yoke/text/detokenizer.h"

#include <utility>

#include "yoke/text/unicode.h"

namespace yoke::text {

std::string Detokenizer::add(TokenId id) {
  if (options_.special_tokens == SpecialTokens::kHide && tokenizer_->is_special(id)) return {};
  tokenizer_->append_bytes(held_, id, place_);
  place_ = TokenPlace::kLater;
  const std::size_t certain = held_.size() - incomplete_utf8_tail(held_);
  std::string text = replace_invalid_utf8(std::string_view(held_).substr(0, certain));
  held_.erase(0, certain);
  return text;
}

std::string Detokenizer::finish() {
  place_ = TokenPlace::kFirst;
  return replace_invalid_utf8(std::exchange(held_, {}));
}

}  // namespace yoke::text
