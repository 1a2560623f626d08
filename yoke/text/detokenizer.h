// Tokens to text as they come, for one answer. A token may hold part of a character: its bytes are held back until the
// character is whole, so that what was given out never changes.
//
//   Detokenizer detokenizer(tokenizer);
//   for (TokenId id : …) print(detokenizer.add(id));
//   print(detokenizer.finish());
//
// The tokenizer must live as long. One thread at a time.
#pragma once
#include <string>

#include "yoke/text/decoder.h"
#include "yoke/text/tokenizer.h"

namespace yoke::text {

class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, DecodeOptions options = {})
      : tokenizer_(&tokenizer), options_(options) {}

  // The text that is certain now: valid UTF-8, often empty. An id outside the vocabulary is kInvalid.
  std::string add(TokenId id);
  // What is held back, an unfinished character as U+FFFD. After that a new text starts.
  std::string finish();
  bool holds_text() const { return !held_.empty(); }

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string held_;
  TokenPlace place_ = TokenPlace::kFirst;
};

}  // namespace yoke::text
