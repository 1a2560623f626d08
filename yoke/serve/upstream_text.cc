#include "yoke/serve/upstream_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/serve/api_fields.h"

namespace yoke::serve {
namespace {

Document* field_of(Document& map, std::string_view key) {
  for (auto& [name, value] : map.fields) {
    if (name == key) return &value;
  }
  return nullptr;
}

void set_field(Document& map, const char* key, Document value) {
  if (Document* const found = field_of(map, key)) {
    *found = std::move(value);
  } else {
    map.add(key, std::move(value));
  }
}

std::int64_t whole(const Document* number, std::int64_t otherwise) {
  std::int64_t value = 0;
  if (!number || number->kind != Document::Kind::kNumber) return otherwise;
  const char* const end = number->text.data() + number->text.size();
  return std::from_chars(number->text.data(), end, value).ptr == end ? value : otherwise;
}

// The text that a chunk adds.
std::string chunk_text(ApiKind kind, const Document& chunk) {
  const auto* const choices = given_field(chunk, "choices");
  if (!choices || choices->items.empty()) return {};
  const Document& choice = choices->items.front();
  const auto* const delta = kind == ApiKind::kChat ? given_field(choice, "delta") : &choice;
  const auto* const text = delta ? given_field(*delta, kind == ApiKind::kChat ? "content" : "text") : nullptr;
  return text ? text->text : std::string();
}

// And out of the chunk, which the client did not ask for them.
void take_ids(Document& chunk, UpstreamAnswer& answer) {
  const auto moved = [](Document& map, std::string_view key, std::vector<std::int64_t>& to) {
    const Document* const found = field_of(map, key);
    if (!found) return false;
    for (const Document& one : found->items) to.push_back(whole(&one, 0));
    std::erase_if(map.fields, [&](const auto& field) { return field.first == key; });
    return true;
  };
  std::vector<std::int64_t> prompt;
  if (moved(chunk, "prompt_token_ids", prompt) && answer.prompt_ids.empty()) answer.prompt_ids = prompt;
  Document* const choices = field_of(chunk, "choices");
  if (!choices || choices->items.empty()) return;
  const std::size_t before = answer.ids.size();
  moved(choices->items.front(), "token_ids", answer.ids);
  if (answer.ids.size() > before) answer.settled = answer.text.size();
}

bool has_finish(const Document& chunk) {
  const auto* const choices = given_field(chunk, "choices");
  return choices && !choices->items.empty() && given_field(choices->items.front(), "finish_reason");
}

}  // namespace

std::vector<std::string> SseReader::add(std::string_view bytes) {
  held_ += bytes;
  std::vector<std::string> events;
  std::size_t begin = 0;
  for (std::size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line = std::string_view(held_).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    events.emplace_back(line);
  }
  held_.erase(0, begin);
  return events;
}

void take_usage(const Document& event, UpstreamUsage& usage) {
  const Document* found = given_field(event, "usage");
  for (const char* part : {"response", "message"}) {  // of streams of /v1/responses and /v1/messages
    const Document* const inner = given_field(event, part);
    if (!found && inner) found = given_field(*inner, "usage");
  }
  if (!found) return;
  const auto take = [&](const Document& map, const char* key, std::optional<std::int64_t>& to) {
    if (const std::int64_t value = whole(given_field(map, key), -1); value >= 0) to = value;
  };
  take(*found, "prompt_tokens", usage.prompt);
  take(*found, "input_tokens", usage.prompt);
  take(*found, "completion_tokens", usage.answer);
  take(*found, "output_tokens", usage.answer);
  for (const char* part : {"prompt_tokens_details", "input_tokens_details"}) {
    if (const auto* const details = given_field(*found, part)) take(*details, "cached_tokens", usage.cached);
  }
  if (!given_field(*found, "cache_read_input_tokens")) return;
  take(*found, "cache_read_input_tokens", usage.cached);  // beside input_tokens, not in them
  if (given_field(*found, "input_tokens")) usage.prompt = usage.prompt.value_or(0) + usage.cached.value_or(0);
}

bool ask_for_usage(Document& body) {
  Document* const options = field_of(body, "stream_options");
  if (!options || options->kind != Document::Kind::kMap) {
    if (options && options->kind != Document::Kind::kNull) return false;  // the server refuses it
    set_field(body, "stream_options", Document::map({{"include_usage", Document::boolean(true)}}));
    return true;
  }
  const auto* const wanted = given_field(*options, "include_usage");
  if (wanted && wanted->text != "false") return false;
  set_field(*options, "include_usage", Document::boolean(true));
  return true;
}

bool drop_usage(Document& chunk) {
  const bool had = std::erase_if(chunk.fields, [](const auto& field) { return field.first == "usage"; }) > 0;
  const auto* const choices = given_field(chunk, "choices");
  return !had || !choices || !choices->items.empty();
}

bool is_piece(const Document& event) {
  const auto* const type = given_field(event, "type");
  return type && (type->text == "content_block_delta" || type->text.ends_with(".delta"));
}

Document take_chunk(ApiKind kind, Document chunk, UpstreamAnswer& answer) {
  const std::string text = chunk_text(kind, chunk);
  answer.text += text;
  if (!text.empty()) {
    ++answer.chunks;
    answer.pieces.push_back(text);
  }
  answer.is_finished = answer.is_finished || has_finish(chunk);
  take_ids(chunk, answer);
  if (answer.id.empty()) {
    if (const auto* const id = given_field(chunk, "id")) answer.id = id->text;
    answer.created = whole(chunk.find("created"), 0);
  }
  return chunk;
}

std::optional<std::string> not_resumable(ApiKind kind, const Document& body) {
  if (kind != ApiKind::kChat && kind != ApiKind::kCompletion)
    return "it is of another kind than a chat or a completion";
  if (whole(given_field(body, "n"), 1) != 1) return "it has several choices";
  if (given_field(body, "logprobs")) return "it has log-probabilities";
  if (const auto* const tools = given_field(body, "tools"); tools && !tools->items.empty()) return "it has tools";
  if (const auto* const format = given_field(body, "response_format")) {
    const auto* const type = given_field(*format, "type");
    if (type && type->text != "text") return "it has a response_format";
  }
  const auto* const prompt = given_field(body, "prompt");
  if (kind == ApiKind::kCompletion && prompt && prompt->kind == Document::Kind::kList) {
    const bool is_ids = !prompt->items.empty() && prompt->items.front().kind == Document::Kind::kNumber;
    if (!is_ids) return "it has several prompts";
  }
  return std::nullopt;
}

std::optional<Document> resumed_body(ApiKind kind, const Document& body, const ResumePoint& point) {
  Document resumed = Document::map();
  for (const char* key : {"model", "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
                          "repetition_penalty", "seed", "stop", "logit_bias", "stop_token_ids", "ignore_eos", "user"}) {
    if (const auto* const value = given_field(body, key)) resumed.add(key, *value);
  }
  Document ids = Document::list();
  for (const auto* part : {&point.prompt, &point.answer}) {
    for (const std::int64_t id : *part) ids.items.push_back(Document::number(id));
  }
  const std::int64_t used = std::ssize(point.prompt) + std::ssize(point.answer);
  std::int64_t left = point.context_max > 0 ? point.context_max - used : 0;
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    if (const auto* const max = given_field(body, key)) left = whole(max, 0) - std::ssize(point.answer);
  }
  if (kind == ApiKind::kCompletion && !given_field(body, "max_tokens")) left = 16 - std::ssize(point.answer);
  const bool is_limited = point.context_max > 0 || given_field(body, "max_tokens") ||
                          given_field(body, "max_completion_tokens") || kind == ApiKind::kCompletion;
  if (is_limited && left <= 0) return std::nullopt;
  resumed.add("prompt", std::move(ids));
  if (is_limited) resumed.add("max_tokens", Document::number(left));
  resumed.add("stream", Document::boolean(true));
  for (const char* key : {"stream_options", "return_token_ids"}) {
    if (const auto* const value = given_field(body, key)) resumed.add(key, *value);
  }
  return resumed;
}

Document resumed_chunk(ApiKind kind, const Document& chunk, const ResumePoint& point, UpstreamAnswer& answer) {
  Document out = chunk;
  if (Document* const choices = field_of(out, "choices"); choices && !choices->items.empty()) {
    // What came after the last known id comes again.
    if (Document* const text = field_of(choices->items.front(), "text")) {
      const std::size_t size = std::min(answer.skipped, text->text.size());
      text->text.erase(0, size);
      answer.skipped -= size;
    }
  }
  out = take_chunk(ApiKind::kCompletion, std::move(out), answer);
  if (!answer.id.empty()) set_field(out, "id", Document::string(answer.id));
  if (answer.created) set_field(out, "created", Document::number(*answer.created));
  if (Document* const usage = field_of(out, "usage"); usage && usage->kind == Document::Kind::kMap) {
    const auto before = std::ssize(point.answer);
    const std::int64_t prompt = whole(usage->find("prompt_tokens"), 0) - before;
    const std::int64_t made = whole(usage->find("completion_tokens"), 0) + before;
    set_field(*usage, "prompt_tokens", Document::number(prompt));
    set_field(*usage, "completion_tokens", Document::number(made));
  }
  if (kind != ApiKind::kChat) return out;
  set_field(out, "object", Document::string("chat.completion.chunk"));
  if (Document* const choices = field_of(out, "choices")) {
    for (Document& choice : choices->items) {
      const auto* const text = given_field(choice, "text");
      const auto* const finish = given_field(choice, "finish_reason");
      Document delta = Document::map();
      if (text && !text->text.empty()) delta.add("content", *text);
      const Document index = choice.find("index") ? *choice.find("index") : Document::number(std::int64_t{0});
      choice = Document::map(
          {{"index", index}, {"delta", std::move(delta)}, {"finish_reason", finish ? *finish : Document::null()}});
    }
  }
  return out;
}

UpstreamUrl parse_upstream(std::string_view url) {
  const auto refuse = [&] {
    return Error(ErrorCode::kUsage, fmt::format("'{}' is no address of a server", printable(url, 100)),
                 "give it as http://HOST:PORT; TLS is the work of a proxy");
  };
  std::string_view rest = url;
  if (!rest.starts_with("http://")) throw refuse();
  rest.remove_prefix(7);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.ends_with("/v1")) rest.remove_suffix(3);
  UpstreamUrl found;
  const std::size_t colon = rest.rfind(':');
  const bool is_v6 = rest.starts_with('[');
  if (colon != std::string_view::npos && (!is_v6 || colon > rest.find(']'))) {
    const std::string_view digits = rest.substr(colon + 1);
    const char* const end = digits.data() + digits.size();
    if (digits.empty() || std::from_chars(digits.data(), end, found.port).ptr != end) throw refuse();
    if (found.port < 1 || found.port > 65535) throw refuse();
    rest = rest.substr(0, colon);
  }
  if (is_v6 && rest.size() > 2) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty() || rest.find_first_of("/ ?#@") != std::string_view::npos) throw refuse();
  found.host = rest;
  return found;
}

}  // namespace yoke::serve
