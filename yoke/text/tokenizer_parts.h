// The parts that a tokenizer.json describes. Inside of Tokenizer: tokenizer_parts.cc reads them, tokenizer.cc uses
// them. Immutable once read.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/added_tokens.h"
#include "yoke/text/bpe.h"
#include "yoke/text/decoder.h"
#include "yoke/text/normalizer.h"
#include "yoke/text/post_processor.h"
#include "yoke/text/pre_tokenizer.h"
#include "yoke/text/tokenizer.h"

namespace yoke::text {

struct Tokenizer::Parts {
  Vocabulary vocabulary;          // of the model: what merges can make
  Vocabulary added;               // added tokens, among them some that the model's vocabulary holds too
  std::vector<bool> special;      // by id
  AddedTokens raw_tokens;         // looked for in the text as it was written
  AddedTokens normalized_tokens;  // looked for in the normalized text
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  PostProcessor post_processor;
  Decoder decoder;
  std::optional<Bpe> bpe;  // holds a pointer to the vocabulary: parts are not moved

  bool contains(TokenId id) const { return added.contains(id) || vocabulary.contains(id); }
  std::string_view text(TokenId id) const { return added.contains(id) ? added.text(id) : vocabulary.text(id); }

  static std::unique_ptr<const Parts> read(std::string json, const std::string& source);
};

}  // namespace yoke::text
