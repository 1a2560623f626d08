// Where an answer is taken up again: prompt and answer so far as token ids, by the other server's own tokenizer.
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/upstream_service.h"

namespace yoke::serve {
using namespace literals;

// By the server's own tokenizer: /tokenize of vLLM and yoke ("tokens" of a prompt or of messages), or of llama-server
// ("content").
std::vector<std::int64_t> UpstreamService::token_ids(const Document& asked) const {
  const http::HttpAnswer answer =
      http::ask(server(), question("/tokenize", print_json(asked, JsonLayout::kOneLine)), Deadline::after(10_s));
  std::vector<std::int64_t> ids;
  const auto read = try_to([&] { return parse_json(answer.body, "tokens"); });
  const auto* const tokens = answer.status == 200 && read ? given_field(*read, "tokens") : nullptr;
  if (!tokens) return ids;
  for (const Document& one : tokens->items) ids.push_back(api_integer(one, "tokens", 0, 1 << 30));
  return ids;
}

// Of a text in the middle of an answer.
std::vector<std::int64_t> UpstreamService::ids_of_text(const std::string& text) const {
  const Document words = Document::string(text);
  auto ids = token_ids(Document::map({{"prompt", words}, {"add_special_tokens", Document::boolean(false)}}));
  if (ids.empty()) ids = token_ids(Document::map({{"content", words}}));
  return ids;
}

// A text can be cut into tokens in several ways, and a model does not always take the tokenizer's: each piece of a
// stream alone keeps the model's own cuts. Where that is not the same text again, as with tokenizers that put a space
// before whatever they are given, nothing.
std::vector<std::int64_t> UpstreamService::ids_of_pieces(const std::vector<std::string>& pieces) const {
  std::map<std::string, std::vector<std::int64_t>> known;
  std::vector<std::int64_t> all;
  std::string text;
  for (const std::string& piece : pieces) {
    auto found = known.find(piece);
    if (found == known.end()) found = known.emplace(piece, ids_of_text(piece)).first;
    if (found->second.empty()) return {};
    all.insert(all.end(), found->second.begin(), found->second.end());
    text += piece;
  }
  Document ids = Document::list();
  for (const std::int64_t id : all) ids.items.push_back(Document::number(id));
  const std::string body = print_json(Document::map({{"tokens", std::move(ids)}}), JsonLayout::kOneLine);
  const http::HttpAnswer answer = http::ask(server(), question("/detokenize", body), Deadline::after(10_s));
  const auto read = try_to([&] { return parse_json(answer.body, "text"); });
  if (answer.status != 200 || !read) return {};
  const auto* const again = given_field(*read, given_field(*read, "prompt") ? "prompt" : "content");
  return again && again->text == text ? all : std::vector<std::int64_t>();
}

std::vector<std::int64_t> UpstreamService::prompt_ids(ApiKind kind, const Document& body) const {
  if (kind == ApiKind::kCompletion) {
    const auto* const prompt = given_field(body, "prompt");
    if (!prompt) return {};
    if (prompt->kind == Document::Kind::kList) {
      std::vector<std::int64_t> ids;
      for (const Document& one : prompt->items) ids.push_back(api_integer(one, "prompt", 0, 1 << 30));
      return ids;
    }
    auto ids = token_ids(Document::map({{"prompt", *prompt}}));
    if (ids.empty()) {
      ids = token_ids(Document::map({{"content", *prompt}, {"add_special", Document::boolean(true)}}));
    }
    return ids;
  }
  Document asked = Document::map({{"messages", *given_field(body, "messages")}});
  if (const auto* const variables = given_field(body, "chat_template_kwargs"))
    asked.add("chat_template_kwargs", *variables);
  auto ids = token_ids(asked);
  if (!ids.empty()) return ids;
  const http::HttpAnswer rendered =
      http::ask(server(), question("/apply-template", print_json(asked, JsonLayout::kOneLine)), Deadline::after(10_s));
  const auto read = try_to([&] { return parse_json(rendered.body, "prompt"); });
  const auto* const prompt = rendered.status == 200 && read ? given_field(*read, "prompt") : nullptr;
  if (!prompt) return ids;
  return token_ids(Document::map(
      {{"content", *prompt}, {"add_special", Document::boolean(true)}, {"parse_special", Document::boolean(true)}}));
}

}  // namespace yoke::serve
