// What a tokenizer puts around the tokens of a text, such as <|begin_of_text|>: the "post_processor" of a
// tokenizer.json. One that is not known is kUnsupported and named.
#pragma once
#include <functional>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/vocabulary.h"

namespace yoke::text {

struct PostProcessor {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

// Ids that are no tokens are kInvalid.
PostProcessor read_post_processor(const Document& document, const std::function<bool(TokenId)>& is_token);

}  // namespace yoke::text
