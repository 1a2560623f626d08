// What a model folder says about text besides the weights: tokenizer, chat template, where answers end, and how its
// makers want it sampled. Immutable once read.
//
//   const ModelText text = ModelText::load(folder);
//   request.prompt = text.encode_chat(messages);
//   request.stop_ids = text.stop_ids;
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/result.h"
#include "yoke/text/chat.h"
#include "yoke/text/sampling.h"
#include "yoke/text/tokenizer.h"

namespace yoke::serve {

struct ModelText {
  // kNotFound where this is no model folder; throws what is wrong with the tokenizer only where that is needed.
  enum class Need { kTokenizer, kNothing };
  static ModelText load(const std::filesystem::path& folder, Need need = Need::kTokenizer);

  // Or why not: kNotFound where the folder has none, else what we cannot read in it. Who gives ids, or plain text,
  // needs neither and is not held up.
  Result<text::Tokenizer> tokenizer = Unexpected(Error(ErrorCode::kNotFound, "no tokenizer was read"));
  Result<text::ChatTemplate> chat = Unexpected(Error(ErrorCode::kNotFound, "no chat template was read"));
  std::vector<text::TokenId> stop_ids;     // of generation_config.json, config.json and the tokenizer
  text::SamplingOptions sampling;          // as generation_config.json says; the best token where it says nothing
  std::optional<std::int64_t> answer_max;  // likewise

  // The text as it is, with what the tokenizer puts around one. kInvalid where it is not UTF-8.
  std::vector<text::TokenId> encode_raw(std::string_view text) const;
  // By the chat template. Both throw why there is no tokenizer or template to do it with.
  std::vector<text::TokenId> encode_chat(const Document& messages) const;
};

Document chat_message(std::string role, std::string content);

// kInvalid with the place of the first byte that is not UTF-8.
void check_utf8(std::string_view text, std::string_view what);

}  // namespace yoke::serve
