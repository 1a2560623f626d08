#include "yoke/serve/answer_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/json.h"

namespace yoke::serve {
namespace {

constexpr double kNoChance = -9999;  // JSON has no minus infinity; vLLM's stand-in for it

Document integer(std::int64_t value) { return Document::number(value); }

Document logprob_number(float value) {
  return Document::number(std::isfinite(value) ? std::max<double>(value, kNoChance) : kNoChance);
}

struct TokenText {
  std::string text;
  std::optional<std::string> bytes;
};

TokenText token_text(const ModelText& text, text::TokenId id) {
  if (!text.tokenizer) return {std::to_string(id), std::to_string(id)};
  if (!text.tokenizer->contains(id)) return {"\uFFFD", std::nullopt};
  const std::string shown = text.tokenizer->decode(std::span(&id, 1), {.special_tokens = text::SpecialTokens::kShow});
  if (shown.find("\uFFFD") != std::string::npos) return {shown, std::nullopt};
  return {shown, shown};
}

Document bytes_json(const std::optional<std::string>& bytes, const Document& otherwise) {
  if (!bytes) return otherwise;
  Document list = Document::list();
  for (const char c : *bytes) list.items.push_back(integer(static_cast<unsigned char>(c)));
  return list;
}

Document chat_logprobs(const ModelText& text, const std::vector<ShownToken>& tokens) {
  return Document::map({{"content", logprob_list(text, tokens, Document::null())}, {"refusal", Document::null()}});
}

Document completion_logprobs(const ModelText& text, const std::vector<ShownToken>& tokens) {
  Document offsets = Document::list(), values = Document::list(), texts = Document::list(), tops = Document::list();
  for (const ShownToken& token : tokens) {
    offsets.items.push_back(integer(token.offset));
    values.items.push_back(logprob_number(token.sampled.logprob));
    texts.items.push_back(Document::string(token.text));
    Document top = Document::map();
    for (const text::TokenLogprob& other : token.sampled.top) {
      const std::string shown = token_text(text, other.id).text;
      if (!top.find(shown)) top.add(shown, logprob_number(other.logprob));  // two tokens may look the same
    }
    tops.items.push_back(std::move(top));
  }
  return Document::map({{"tokens", std::move(texts)},
                        {"token_logprobs", std::move(values)},
                        {"top_logprobs", std::move(tops)},
                        {"text_offset", std::move(offsets)}});
}

Document logprobs_of(ApiKind kind, const ModelText& text, const ChoicePiece& piece) {
  if (!piece.logprobs) return Document::null();
  return kind == ApiKind::kChat ? chat_logprobs(text, *piece.logprobs) : completion_logprobs(text, *piece.logprobs);
}

Document finish_of(const ChoicePiece& piece) {
  return piece.finish ? Document::string(*piece.finish) : Document::null();
}

Document answer_map(const AnswerHead& head, const char* object, Document choices) {
  return Document::map({{"id", Document::string(head.id)},
                        {"object", Document::string(object)},
                        {"created", integer(head.created)},
                        {"model", Document::string(head.model)},
                        {"choices", std::move(choices)}});
}

// An answer that is a call has no text.
Document message_of(const ChoicePiece& piece) {
  const bool is_call = piece.calls.kind == Document::Kind::kList;
  Document message =
      Document::map({{"role", Document::string("assistant")},
                     {"content", is_call && piece.text.empty() ? Document::null() : Document::string(piece.text)},
                     {"refusal", Document::null()}});
  if (!piece.thought.empty()) message.add("reasoning_content", Document::string(piece.thought));
  if (is_call) message.add("tool_calls", piece.calls);
  return message;
}

Document ids_json(const std::vector<text::TokenId>& ids) {
  Document list = Document::list();
  for (const text::TokenId id : ids) list.items.push_back(integer(id));
  return list;
}

const char* chunk_object(ApiKind kind) { return kind == ApiKind::kChat ? "chat.completion.chunk" : "text_completion"; }

std::string sse(const Document& document) {
  return fmt::format("data: {}\n\n", print_json(document, JsonLayout::kOneLine));
}

}  // namespace

Document to_json(const TokenUsage& usage) {
  return Document::map({{"prompt_tokens", integer(usage.prompt)},
                        {"completion_tokens", integer(usage.answer)},
                        {"total_tokens", integer(usage.prompt + usage.answer)},
                        {"prompt_tokens_details", Document::map({{"cached_tokens", integer(usage.cached)}})}});
}

Document logprob_list(const ModelText& text, const std::vector<ShownToken>& tokens, const Document& no_bytes) {
  Document content = Document::list();
  for (const ShownToken& token : tokens) {
    Document top = Document::list();
    for (const text::TokenLogprob& other : token.sampled.top) {
      const TokenText shown = token_text(text, other.id);
      top.items.push_back(Document::map({{"token", Document::string(shown.text)},
                                         {"logprob", logprob_number(other.logprob)},
                                         {"bytes", bytes_json(shown.bytes, no_bytes)}}));
    }
    content.items.push_back(Document::map({{"token", Document::string(token.text)},
                                           {"logprob", logprob_number(token.sampled.logprob)},
                                           {"bytes", bytes_json(token.bytes, no_bytes)},
                                           {"top_logprobs", std::move(top)}}));
  }
  return content;
}

ShownToken shown_token(const ModelText& text, const text::SampledToken& sampled, std::int64_t offset) {
  TokenText shown = token_text(text, sampled.id);
  return {.text = std::move(shown.text), .bytes = std::move(shown.bytes), .sampled = sampled, .offset = offset};
}

Document whole_answer(const AnswerHead& head, const ModelText& text, const std::vector<ChoicePiece>& pieces,
                      const TokenUsage& usage) {
  Document choices = Document::list();
  for (const ChoicePiece& piece : pieces) {
    Document choice = Document::map({{"index", integer(piece.index)}});
    if (head.kind == ApiKind::kChat) {
      choice.add("message", message_of(piece));
    } else {
      choice.add("text", Document::string(piece.text));
    }
    choice.add("logprobs", logprobs_of(head.kind, text, piece));
    choice.add("finish_reason", finish_of(piece));
    choices.items.push_back(std::move(choice));
  }
  const char* const object = head.kind == ApiKind::kChat ? "chat.completion" : "text_completion";
  Document answer = answer_map(head, object, std::move(choices));
  answer.add("usage", to_json(usage));
  return answer;
}

std::string answer_chunk(const AnswerHead& head, const ModelText& text, const ChoicePiece& piece,
                         bool with_usage_null) {
  Document choice = Document::map({{"index", integer(piece.index)}});
  if (head.kind == ApiKind::kChat) {
    Document delta = Document::map();
    if (piece.is_first) delta.add("role", Document::string("assistant"));
    if (piece.is_first || !piece.text.empty() || piece.logprobs) delta.add("content", Document::string(piece.text));
    if (!piece.thought.empty()) delta.add("reasoning_content", Document::string(piece.thought));
    if (piece.calls.kind == Document::Kind::kList) delta.add("tool_calls", piece.calls);
    choice.add("delta", std::move(delta));
    if (piece.logprobs) choice.add("logprobs", logprobs_of(head.kind, text, piece));
  } else {
    choice.add("text", Document::string(piece.text));
    choice.add("logprobs", logprobs_of(head.kind, text, piece));
  }
  choice.add("finish_reason", finish_of(piece));
  if (piece.ids) choice.add("token_ids", ids_json(*piece.ids));
  Document chunk = answer_map(head, chunk_object(head.kind), Document::list({std::move(choice)}));
  if (with_usage_null && head.kind == ApiKind::kChat) chunk.add("usage", Document::null());
  if (piece.prompt_ids) chunk.add("prompt_token_ids", ids_json(*piece.prompt_ids));
  return sse(chunk);
}

std::string usage_chunk(const AnswerHead& head, const TokenUsage& usage) {
  Document chunk = answer_map(head, chunk_object(head.kind), Document::list());
  chunk.add("usage", to_json(usage));
  return sse(chunk);
}

}  // namespace yoke::serve
