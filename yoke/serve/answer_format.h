// Answers in the shape of OpenAI's API: whole ones, and the chunks of a stream. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/serve/completion_request.h"

namespace yoke::serve {

// What all answers and chunks of one request begin with.
struct AnswerHead {
  ApiKind kind = ApiKind::kChat;
  std::string id;  // "chatcmpl-…", "cmpl-…"
  std::int64_t created = 0;
  std::string model;
};

struct TokenUsage {
  std::int64_t prompt = 0;
  std::int64_t cached = 0;  // of the prompt
  std::int64_t answer = 0;
};
Document to_json(const TokenUsage& usage);

// A token as log-probabilities show it.
struct ShownToken {
  std::string text;
  std::optional<std::string> bytes;  // nothing where the token is a part of a character
  text::SampledToken sampled;
  std::int64_t offset = 0;  // of its text in the answer
};
ShownToken shown_token(const ModelText& text, const text::SampledToken& sampled, std::int64_t offset);

struct ChoicePiece {
  int index = 0;
  std::string text = {};
  std::string thought = {};  // what a model that thinks wrote before its answer
  Document calls = {};       // of tools: a list, or null
  std::optional<std::vector<ShownToken>> logprobs = {};
  std::optional<std::string> finish = {};                  // stop, length, tool_calls
  bool is_first = false;                                   // of a stream: names the role
  const std::vector<text::TokenId>* ids = nullptr;         // of the tokens that this piece ends with
  const std::vector<text::TokenId>* prompt_ids = nullptr;  // of the first piece
};

// The tokens as a list with their log-probabilities and those of the others; `no_bytes` stands for the bytes of a token
// that is a part of a character.
Document logprob_list(const ModelText& text, const std::vector<ShownToken>& tokens, const Document& no_bytes);

Document whole_answer(const AnswerHead& head, const ModelText& text, const std::vector<ChoicePiece>& choices,
                      const TokenUsage& usage);
// As it goes over the wire, with "data: ". `with_usage_null`: the client asked for usage, which the last chunk has.
std::string answer_chunk(const AnswerHead& head, const ModelText& text, const ChoicePiece& piece, bool with_usage_null);
std::string usage_chunk(const AnswerHead& head, const TokenUsage& usage);
inline constexpr const char* kStreamEnd = "data: [DONE]\n\n";

}  // namespace yoke::serve
