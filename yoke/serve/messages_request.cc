#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/other_requests.h"

namespace yoke::serve {
namespace {

const std::vector<std::string_view> kMessagesFields = {"model", "messages", "max_tokens", "system", "stream",
                                                       "temperature", "top_p", "top_k", "stop_sequences", "tools",
                                                       "tool_choice",
                                                       // taken, and without an effect here
                                                       "metadata", "service_tier", "thinking", "cache_control",
                                                       "container", "context_management", "output_config", "betas"};

const Document& wanted(const Document& map, const char* key, const std::string& where) {
  const auto* const found = given_field(map, key);
  if (!found) throw ApiError(400, fmt::format("{}: Field required", where), where);
  return *found;
}

// A string, or blocks of text.
std::string block_text(const Document& content, const std::string& where) {
  if (content.kind == Document::Kind::kText) return content.text;
  if (content.kind != Document::Kind::kList) refuse_type(where, "a string or an array", content);
  std::string all;
  for (const Document& block : content.items) {
    const auto* const type = given_field(block, "type");
    if (!type || type->text != "text") refuse_value(where, "this model reads blocks of the type 'text' only.");
    all += api_text(wanted(block, "text", where + ".text"), where + ".text");
  }
  return all;
}

Document message_of(const char* role, std::string text) {
  return Document::map({{"role", Document::string(role)}, {"content", Document::string(std::move(text))}});
}

// A message of blocks becomes one of text and calls; each result of a tool a message of its own, before the text.
void add_message(const Document& message, const std::string& where, Document& all) {
  if (message.kind != Document::Kind::kMap) refuse_type(where, "an object", message);
  const std::string role = api_text(wanted(message, "role", where + ".role"), where + ".role");
  if (role != "user" && role != "assistant") refuse_value(where + ".role", "it must be user or assistant.");
  const Document& content = wanted(message, "content", where + ".content");
  if (content.kind == Document::Kind::kText) {
    all.items.push_back(message_of(role.c_str(), content.text));
    return;
  }
  if (content.kind != Document::Kind::kList) refuse_type(where + ".content", "a string or an array", content);
  std::string text, thought;
  Document calls = Document::list();
  bool has_text = content.items.empty();
  for (std::size_t i = 0; i < content.items.size(); ++i) {
    const Document& block = content.items[i];
    const std::string at = fmt::format("{}.content[{}]", where, i);
    if (block.kind != Document::Kind::kMap) refuse_type(at, "an object", block);
    const std::string type = api_text(wanted(block, "type", at + ".type"), at + ".type");
    if (type == "text") {
      text += api_text(wanted(block, "text", at + ".text"), at + ".text");
      has_text = true;
    } else if (type == "thinking" && role == "assistant") {
      if (const auto* const given = given_field(block, "thinking")) thought += api_text(*given, at + ".thinking");
    } else if (type == "redacted_thinking" && role == "assistant") {
      continue;
    } else if (type == "tool_use" && role == "assistant") {
      const Document& input = wanted(block, "input", at + ".input");
      calls.items.push_back(Document::map(
          {{"id", wanted(block, "id", at + ".id")},
           {"type", Document::string("function")},
           {"function", Document::map({{"name", wanted(block, "name", at + ".name")},
                                       {"arguments", Document::string(print_json(input, JsonLayout::kOneLine))}})}}));
    } else if (type == "tool_result" && role == "user") {
      const auto* const result = given_field(block, "content");
      Document read = message_of("tool", result ? block_text(*result, at + ".content") : std::string());
      read.add("tool_call_id", wanted(block, "tool_use_id", at + ".tool_use_id"));
      all.items.push_back(std::move(read));
    } else {
      refuse_value(at + ".type", fmt::format("blocks of the type '{}' are not supported here.", printable(type, 40)));
    }
  }
  if (role == "user" && !has_text) return;
  Document read = message_of(role.c_str(), text);
  if (!thought.empty()) read.add("reasoning_content", Document::string(thought));
  if (!calls.items.empty()) read.add("tool_calls", std::move(calls));
  all.items.push_back(std::move(read));
}

Document chat_tools(const Document& tools) {
  if (tools.kind != Document::Kind::kList) refuse_type("tools", "an array", tools);
  Document all = Document::list();
  for (std::size_t i = 0; i < tools.items.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    const Document& tool = tools.items[i];
    if (tool.kind != Document::Kind::kMap) refuse_type(where, "an object", tool);
    if (const auto* const type = given_field(tool, "type"); type && type->text != "custom") {
      refuse_value(where + ".type", "this server has tools with an input_schema only.");
    }
    Document function = Document::map({{"name", wanted(tool, "name", where + ".name")}});
    if (const auto* const about = given_field(tool, "description")) function.add("description", *about);
    function.add("parameters", wanted(tool, "input_schema", where + ".input_schema"));
    all.items.push_back(Document::map({{"type", Document::string("function")}, {"function", std::move(function)}}));
  }
  return all;
}

Document chat_tool_choice(const Document& choice) {
  const std::string type = api_text(wanted(choice, "type", "tool_choice.type"), "tool_choice.type");
  if (type == "any") return Document::string("required");
  if (type == "auto" || type == "none") return Document::string(type);
  if (type != "tool") refuse_value("tool_choice.type", "it must be auto, any, tool or none.");
  return Document::map({{"type", Document::string("function")},
                        {"function", Document::map({{"name", wanted(choice, "name", "tool_choice.name")}})}});
}

}  // namespace

Document chat_body_of_messages(const Document& body, MessagesUse use) {
  for (const auto& [key, value] : body.fields) {
    const auto is_key = [&name = key](std::string_view one) { return one == name; };
    if (std::any_of(kMessagesFields.begin(), kMessagesFields.end(), is_key)) continue;
    throw ApiError(400, fmt::format("{}: Extra inputs are not permitted", printable(key, 60)), printable(key, 60));
  }
  Document messages = Document::list();
  if (const auto* const system = given_field(body, "system")) {
    messages.items.push_back(message_of("system", block_text(*system, "system")));
  }
  const Document& given = wanted(body, "messages", "messages");
  if (given.kind != Document::Kind::kList) refuse_type("messages", "an array", given);
  if (given.items.empty()) refuse_value("messages", "there must be one at least.");
  for (std::size_t i = 0; i < given.items.size(); ++i) {
    add_message(given.items[i], fmt::format("messages[{}]", i), messages);
  }
  Document chat = Document::map({{"messages", std::move(messages)}});
  if (use == MessagesUse::kAnswer) chat.add("max_tokens", wanted(body, "max_tokens", "max_tokens"));
  for (const char* key : {"model", "stream", "temperature", "top_p", "top_k"}) {
    if (const auto* const value = given_field(body, key)) chat.add(key, *value);
  }
  if (const auto* const stops = given_field(body, "stop_sequences")) {
    if (stops->kind != Document::Kind::kList) refuse_type("stop_sequences", "an array", *stops);
    if (!stops->items.empty()) chat.add("stop", *stops);
  }
  if (const auto* const tools = given_field(body, "tools")) chat.add("tools", chat_tools(*tools));
  if (const auto* const choice = given_field(body, "tool_choice")) {
    chat.add("tool_choice", chat_tool_choice(*choice));
    if (const auto* const alone = given_field(*choice, "disable_parallel_tool_use")) {
      const bool is_alone = api_bool(*alone, "tool_choice.disable_parallel_tool_use");
      chat.add("parallel_tool_calls", Document::boolean(!is_alone));
    }
  }
  if (const auto* const thinking = given_field(body, "thinking")) {
    const auto* const type = given_field(*thinking, "type");
    const bool thinks = type && type->text != "disabled";
    chat.add("chat_template_kwargs", Document::map({{"enable_thinking", Document::boolean(thinks)}}));
  }
  return chat;
}

}  // namespace yoke::serve
