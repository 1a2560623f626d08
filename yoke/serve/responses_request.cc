#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "yoke/base/text.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/serve/other_requests.h"

namespace yoke::serve {
namespace {

const std::vector<std::string_view> kResponsesFields = {
    "model", "input", "instructions", "max_output_tokens", "stream", "temperature", "top_p", "tools", "tool_choice",
    "parallel_tool_calls", "text", "reasoning", "stream_options", "include", "truncation", "top_logprobs",
    // taken, and without an effect here
    "metadata", "store", "user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "max_tool_calls",  // of tools that the server itself runs, and this one runs none
    // refused
    "previous_response_id", "conversation", "background", "prompt"};

std::string item_text(const Document& content, const std::string& where) {
  if (content.kind == Document::Kind::kText) return content.text;
  if (content.kind != Document::Kind::kList) refuse_type(where, "a string or an array", content);
  std::string all;
  for (const Document& part : content.items) {
    const auto* const type = given_field(part, "type");
    const auto* const text = given_field(part, "text");
    const bool is_text = type && (type->text == "input_text" || type->text == "output_text" || type->text == "text");
    if (!is_text || !text) refuse_value(where, "this model reads parts of the type 'input_text' only.");
    all += api_text(*text, where + ".text");
  }
  return all;
}

// Calls of one turn stand in one message, as templates want them.
void add_call(const Document& item, const std::string& where, Document& all) {
  const auto* const id = given_field(item, "call_id");
  const auto* const name = given_field(item, "name");
  const auto* const arguments = given_field(item, "arguments");
  if (!id || !name) refuse_type(where, "a function_call with call_id and name", item);
  Document call = Document::map(
      {{"id", *id},
       {"type", Document::string("function")},
       {"function", Document::map({{"name", *name}, {"arguments", arguments ? *arguments : Document::string("{}")}})}});
  const bool goes_on = !all.items.empty() && all.items.back().find("role")->text == "assistant";
  if (!goes_on) {
    all.items.push_back(Document::map({{"role", Document::string("assistant")}, {"content", Document::string("")}}));
  }
  Document& message = all.items.back();
  for (auto& [key, value] : message.fields) {
    if (key == "tool_calls") return value.items.push_back(std::move(call));
  }
  message.add("tool_calls", Document::list({std::move(call)}));
}

void add_item(const Document& item, const std::string& where, Document& all) {
  if (item.kind != Document::Kind::kMap) refuse_type(where, "an object", item);
  const auto* const given = given_field(item, "type");
  const std::string type = given ? api_text(*given, where + ".type") : "message";
  if (type == "reasoning" || type == "item_reference") return;  // the template decides what it shows of thoughts
  if (type == "function_call") return add_call(item, where, all);
  if (type == "function_call_output") {
    const auto* const output = given_field(item, "output");
    const auto* const id = given_field(item, "call_id");
    if (!output || !id) refuse_type(where, "a function_call_output with call_id and output", item);
    all.items.push_back(Document::map({{"role", Document::string("tool")},
                                       {"content", Document::string(item_text(*output, where + ".output"))},
                                       {"tool_call_id", *id}}));
    return;
  }
  if (type != "message") {
    refuse_value(where + ".type", fmt::format("items of the type '{}' are not supported here.", printable(type, 40)));
  }
  const auto* const role = given_field(item, "role");
  const auto* const content = given_field(item, "content");
  if (!role || !content) refuse_type(where, "a message with role and content", item);
  all.items.push_back(
      Document::map({{"role", *role}, {"content", Document::string(item_text(*content, where + ".content"))}}));
}

Document nested_tools(const Document& tools) {
  if (tools.kind != Document::Kind::kList) refuse_type("tools", "an array", tools);
  Document all = Document::list();
  for (std::size_t i = 0; i < tools.items.size(); ++i) {
    const Document& tool = tools.items[i];
    const auto* const type = given_field(tool, "type");
    if (!type || type->text != "function") {
      refuse_value(fmt::format("tools[{}].type", i), "this server has tools of the type 'function' only.");
    }
    Document function = Document::map();
    for (const auto& [key, value] : tool.fields) {
      if (key != "type") function.add(key, value);
    }
    all.items.push_back(Document::map({{"type", Document::string("function")}, {"function", std::move(function)}}));
  }
  return all;
}

// What an answer is to hold besides its text. Most names are of tools that this server does not run, whose items no
// answer has, so there is nothing to add.
bool includes_logprobs(const Document& body) {
  constexpr std::array<std::string_view, 7> kOfOthers = {"file_search_call.results",
                                                         "web_search_call.results",
                                                         "web_search_call.action.sources",
                                                         "message.input_image.image_url",
                                                         "computer_call_output.output.image_url",
                                                         "code_interpreter_call.outputs",
                                                         "reasoning.encrypted_content"};
  const auto* const include = given_field(body, "include");
  if (!include) return false;
  if (include->kind != Document::Kind::kList) refuse_type("include", "an array", *include);
  bool found = false;
  for (const Document& item : include->items) {
    const std::string name = api_text(item, "include");
    if (name == "message.output_text.logprobs") {
      found = true;
    } else if (std::find(kOfOthers.begin(), kOfOthers.end(), name) == kOfOthers.end()) {
      refuse_value("include", fmt::format("there is no '{}'.", printable(name, 60)));
    }
  }
  return found;
}

void add_logprobs(const Document& body, Document& chat) {
  const auto* const top = given_field(body, "top_logprobs");
  if (includes_logprobs(body)) {
    chat.add("logprobs", Document::boolean(true));
    if (top) chat.add("top_logprobs", *top);
  } else if (top && api_integer(*top, "top_logprobs", 0, 20) > 0) {
    refuse_value("top_logprobs", "it needs 'message.output_text.logprobs' in 'include'.");
  }
}

Document response_format(const Document& format) {
  const auto* const type = given_field(format, "type");
  if (!type || type->text != "json_schema") return format;
  Document described = Document::map();
  for (const auto& [key, value] : format.fields) {
    if (key != "type") described.add(key, value);
  }
  return Document::map({{"type", *type}, {"json_schema", std::move(described)}});
}

}  // namespace

Document chat_body_of_responses(const Document& body) {
  check_known_fields(body, kResponsesFields);
  for (const char* key : {"previous_response_id", "conversation", "prompt"}) {
    if (!given_field(body, key)) continue;
    throw ApiError(
        400, fmt::format("'{}' is not supported: this server keeps no answers. Send the whole conversation.", key), key,
        "unsupported_parameter");
  }
  if (const auto* const truncation = given_field(body, "truncation")) {
    if (api_text(*truncation, "truncation") != "disabled") {
      refuse_value("truncation", "this server drops no parts of a conversation: it must be 'disabled'.");
    }
  }
  if (const auto* const background = given_field(body, "background"); background && background->text == "true") {
    throw ApiError(400, "'background' is not supported: this server keeps no answers.", "background",
                   "unsupported_parameter");
  }
  Document messages = Document::list();
  if (const auto* const instructions = given_field(body, "instructions")) {
    messages.items.push_back(Document::map({{"role", Document::string("system")},
                                            {"content", Document::string(api_text(*instructions, "instructions"))}}));
  }
  const auto* const input = given_field(body, "input");
  if (!input) throw ApiError(400, "Missing required parameter: 'input'.", "input", "missing_required_parameter");
  if (input->kind == Document::Kind::kText) {
    messages.items.push_back(Document::map({{"role", Document::string("user")}, {"content", *input}}));
  } else if (input->kind == Document::Kind::kList) {
    for (std::size_t i = 0; i < input->items.size(); ++i)
      add_item(input->items[i], fmt::format("input[{}]", i), messages);
  } else {
    refuse_type("input", "a string or an array", *input);
  }
  Document chat = Document::map({{"messages", std::move(messages)}});
  for (const char* key : {"model", "stream", "temperature", "top_p", "parallel_tool_calls"}) {
    if (const auto* const value = given_field(body, key)) chat.add(key, *value);
  }
  add_logprobs(body, chat);
  if (const auto* const max = given_field(body, "max_output_tokens")) chat.add("max_tokens", *max);
  if (const auto* const tools = given_field(body, "tools")) chat.add("tools", nested_tools(*tools));
  if (const auto* const choice = given_field(body, "tool_choice")) {
    const auto* const name = choice->kind == Document::Kind::kMap ? given_field(*choice, "name") : nullptr;
    chat.add("tool_choice", name ? Document::map({{"type", Document::string("function")},
                                                  {"function", Document::map({{"name", *name}})}})
                                 : *choice);
  }
  if (const auto* const text = given_field(body, "text")) {
    if (const auto* const format = given_field(*text, "format")) chat.add("response_format", response_format(*format));
  }
  if (const auto* const reasoning = given_field(body, "reasoning")) {
    if (const auto* const effort = given_field(*reasoning, "effort")) chat.add("reasoning_effort", *effort);
  }
  return chat;
}

}  // namespace yoke::serve
