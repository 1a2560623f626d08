#include "yoke/serve/chat_messages.h"

#include <fmt/format.h>

#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"

namespace yoke::serve {
namespace {

// The text of a message: a string, or parts of the type "text".
std::string content_text(const Document& message, const std::string& where) {
  const auto* const content = given_field(message, "content");
  if (!content) return {};
  if (content->kind == Document::Kind::kText) return content->text;
  if (content->kind != Document::Kind::kList) refuse_type(where + ".content", "a string or an array", *content);
  std::string all;
  for (const Document& part : content->items) {
    const auto* const type = given_field(part, "type");
    const auto* const text = given_field(part, "text");
    if (!type || api_text(*type, where + ".content.type") != "text" || !text) {
      refuse_value(where + ".content", "this model reads parts of the type 'text' only.");
    }
    all += api_text(*text, where + ".content.text");
  }
  return all;
}

// Templates write a call's arguments as JSON themselves: a text of JSON would be quoted twice.
Document read_call(const Document& call, const std::string& where) {
  const auto* const function = given_field(call, "function");
  const auto* const name = function ? given_field(*function, "name") : nullptr;
  if (!name) refuse_type(where, "a call of a function with a name", call);
  Document arguments = Document::map();
  if (const auto* const given = given_field(*function, "arguments")) {
    const std::string text = api_text(*given, where + ".function.arguments");
    if (!trim(text).empty()) {
      const auto read = try_to([&] { return parse_json(text, "arguments"); });
      if (!read) refuse_value(where + ".function.arguments", "it must be JSON in a string.");
      arguments = *read;
    }
  }
  Document read =
      Document::map({{"type", Document::string("function")},
                     {"function", Document::map({{"name", Document::string(api_text(*name, where + ".name"))},
                                                 {"arguments", std::move(arguments)}})}});
  if (const auto* const id = given_field(call, "id")) read.add("id", Document::string(api_text(*id, where + ".id")));
  return read;
}

void add_calls(const Document& message, const std::string& where, Document& read) {
  const auto* const calls = given_field(message, "tool_calls");
  if (!calls) return;
  if (calls->kind != Document::Kind::kList) refuse_type(where + ".tool_calls", "an array", *calls);
  Document all = Document::list();
  for (std::size_t i = 0; i < calls->items.size(); ++i) {
    all.items.push_back(read_call(calls->items[i], fmt::format("{}.tool_calls[{}]", where, i)));
  }
  if (!all.items.empty()) read.add("tool_calls", std::move(all));
}

Document read_message(const Document& message, std::size_t place) {
  const std::string where = fmt::format("messages[{}]", place);
  if (message.kind != Document::Kind::kMap) refuse_type(where, "an object", message);
  const auto* const role = given_field(message, "role");
  if (!role) throw ApiError(400, fmt::format("Missing required parameter: '{}.role'.", where), where + ".role");
  std::string name = api_text(*role, where + ".role");
  if (name == "developer") name = "system";
  if (name != "system" && name != "user" && name != "assistant" && name != "tool") {
    refuse_value(where + ".role",
                 fmt::format("'{}' is none of system, developer, user, assistant, tool.", printable(name, 40)));
  }
  if (!given_field(message, "content") && name != "assistant") {
    refuse_type(where + ".content", "a string or an array", Document::null());
  }
  Document read = chat_message(name, content_text(message, where));
  if (name == "assistant") {
    add_calls(message, where, read);
    // As DeepSeek's and vLLM's APIs call it; Qwen's and OpenAI's templates read it by these names.
    if (const auto* const thought = given_field(message, "reasoning_content")) {
      read.add("reasoning_content", Document::string(api_text(*thought, where + ".reasoning_content")));
      read.add("thinking", *read.find("reasoning_content"));
    }
  }
  for (const char* key : {"tool_call_id", "name"}) {
    if (const auto* const value = given_field(message, key)) {
      read.add(key, Document::string(api_text(*value, fmt::format("{}.{}", where, key))));
    }
  }
  return read;
}

bool opens_thought(const std::vector<text::Segment>& segments) {
  std::string tail;
  for (auto segment = segments.rbegin(); segment != segments.rend() && tail.size() < 64; ++segment) {
    tail.insert(0, segment->text);
  }
  return trim(tail).ends_with("<think>");
}

}  // namespace

Document read_messages(const Document& body) {
  const auto* const messages = given_field(body, "messages");
  if (!messages) {
    throw ApiError(400, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter");
  }
  if (messages->kind != Document::Kind::kList) refuse_type("messages", "an array", *messages);
  if (messages->items.empty()) refuse_value("messages", "there must be one at least.");
  Document read = Document::list();
  for (std::size_t i = 0; i < messages->items.size(); ++i) read.items.push_back(read_message(messages->items[i], i));
  return read;
}

ChatPrompt encode_chat_prompt(const Document& body, const Document& tools, const ServedModel& model) {
  const Document messages = read_messages(body);
  const auto* const given = given_field(body, "chat_template_kwargs");
  if (given && given->kind != Document::Kind::kMap) refuse_type("chat_template_kwargs", "an object", *given);
  Document variables = given ? *given : Document::map();
  if (const auto* const effort = given_field(body, "reasoning_effort")) {
    if (!variables.find("reasoning_effort")) {
      variables.add("reasoning_effort", Document::string(api_text(*effort, "reasoning_effort")));
    }
  }
  if (!model.text->chat) {
    throw ApiError(400, "This model has no chat template: use /v1/completions.", "messages", "no_chat_template");
  }
  const auto segments = model.text->chat->render(messages, {.tools = tools, .variables = variables});
  return {.ids = model.text->tokenizer->encode(segments), .begins_in_thought = opens_thought(segments)};
}

}  // namespace yoke::serve
