#include "yoke/serve/answer_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/serve/api_error.h"
#include "yoke/serve/api_fields.h"
#include "yoke/text/grammar.h"

namespace yoke::serve {
namespace {

using text::AnswerStyle;
using text::ToolStyle;

constexpr std::size_t kMaxTools = 128;  // as OpenAI has it

Document part(const char* kind, Document value) { return Document::map({{kind, std::move(value)}}); }
Document literal(std::string text) { return part("literal", Document::string(std::move(text))); }
Document special(const char* token) { return part("special", Document::string(token)); }
Document sequence(std::vector<Document> parts) { return part("sequence", Document::list(std::move(parts))); }
Document any_of(std::vector<Document> parts) { return part("any_of", Document::list(std::move(parts))); }

const Document& tool_function(const Document& tool, std::size_t place) {
  const std::string where = fmt::format("tools[{}]", place);
  if (tool.kind != Document::Kind::kMap) refuse_type(where, "an object", tool);
  const auto* const type = given_field(tool, "type");
  if (!type || api_text(*type, where + ".type") != "function") {
    refuse_value(where + ".type", "this server has tools of the type 'function' only.");
  }
  const auto* const function = given_field(tool, "function");
  if (!function || function->kind != Document::Kind::kMap) {
    refuse_type(where + ".function", "an object", function ? *function : Document::null());
  }
  return *function;
}

std::string tool_name(const Document& function, const std::string& where) {
  const auto* const name = given_field(function, "name");
  const std::string text = name ? api_text(*name, where + ".name") : std::string();
  const bool is_name = !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!is_name) refuse_value(where + ".name", "it must have 1 to 64 letters, digits, underscores, dashes and dots.");
  return text;
}

// JSON of a function's arguments in the marks of the model.
Document call_grammar(const Document& function, ToolStyle style) {
  const std::string name = given_field(function, "name")->text;
  const auto* const given = given_field(function, "parameters");
  const Document schema =
      part("schema",
           given ? *given : Document::map({{"type", Document::string("object")}, {"properties", Document::map()}}));
  const std::string quoted = print_json(Document::string(name), JsonLayout::kOneLine);
  if (style == ToolStyle::kHarmony) {
    return sequence({special("<|channel|>"), literal(fmt::format("commentary to=functions.{} ", name)),
                     special("<|constrain|>"), literal("json"), special("<|message|>"), schema});
  }
  if (style == ToolStyle::kBareJson) {
    return sequence({literal(fmt::format("{{\"name\": {}, \"parameters\": ", quoted)), schema, literal("}")});
  }
  return sequence({literal(fmt::format("<tool_call>\n{{\"name\": {}, \"arguments\": ", quoted)), schema,
                   literal("}\n</tool_call>")});
}

// With the thoughts that the model may have before.
Document after_thoughts(Document answer, AnswerStyle style, bool begins_in_thought) {
  if (style.tools == ToolStyle::kHarmony) {
    return any_of({answer, sequence({special("<|channel|>"), literal("analysis"), special("<|message|>"),
                                     part("until_special", Document::string("<|end|>")), special("<|start|>"),
                                     literal("assistant"), answer})});
  }
  if (!style.thinks) return answer;
  const Document blanks = any_of({literal("\n\n"), literal("\n"), literal("")});
  const Document thought = sequence({part("until", Document::string("</think>")), blanks, answer});
  if (begins_in_thought) return thought;
  return any_of({answer, sequence({literal("<think>"), thought})});
}

// The schema of response_format; nothing where any text will do.
std::optional<Document> wanted_schema(const Document& body) {
  const auto* const format = given_field(body, "response_format");
  if (!format) return std::nullopt;
  const auto* const type = given_field(*format, "type");
  if (!type) refuse_type("response_format", "an object with a type", *format);
  const std::string name = api_text(*type, "response_format.type");
  if (name == "text") return std::nullopt;
  if (name == "json_object") return Document::map({{"type", Document::string("object")}});
  if (name != "json_schema") {
    refuse_value("response_format.type",
                 fmt::format("'{}' is none of text, json_object, json_schema.", printable(name, 40)));
  }
  const auto* const described = given_field(*format, "json_schema");
  const auto* const schema = described ? given_field(*described, "schema") : nullptr;
  if (!schema || schema->kind != Document::Kind::kMap) {
    refuse_type("response_format.json_schema.schema", "an object", schema ? *schema : Document::null());
  }
  return *schema;
}

}  // namespace

ToolUse read_tool_use(const Document& body, AnswerStyle style) {
  ToolUse use;
  const auto* const tools = given_field(body, "tools");
  const auto* const choice = given_field(body, "tool_choice");
  if (tools && tools->kind != Document::Kind::kList) refuse_type("tools", "an array", *tools);
  if (!tools || tools->items.empty()) {
    if (choice && choice->text != "none" && choice->text != "auto") refuse_value("tool_choice", "it needs 'tools'.");
    return use;
  }
  if (tools->items.size() > kMaxTools) refuse_value("tools", "there can be 128 at most.");
  if (style.tools == ToolStyle::kNone) {
    throw ApiError(400, "'tools' is not supported: this model's chat template has no tools.", "tools",
                   "unsupported_parameter");
  }
  for (std::size_t i = 0; i < tools->items.size(); ++i) {
    use.names.push_back(tool_name(tool_function(tools->items[i], i), fmt::format("tools[{}].function", i)));
  }
  use.choice = ToolUse::Choice::kAuto;
  if (choice && choice->kind == Document::Kind::kText) {
    if (choice->text == "none") return {};
    if (choice->text == "required") use.choice = ToolUse::Choice::kMust;
    if (choice->text != "required" && choice->text != "auto") {
      refuse_value("tool_choice", "it must be none, auto, required or a function.");
    }
  } else if (choice) {
    const auto* const function = given_field(*choice, "function");
    const auto* const name = function ? given_field(*function, "name") : nullptr;
    if (!name) refuse_type("tool_choice", "a string or a function with a name", *choice);
    const std::string wanted = api_text(*name, "tool_choice.function.name");
    if (std::find(use.names.begin(), use.names.end(), wanted) == use.names.end()) {
      refuse_value("tool_choice", fmt::format("there is no tool '{}'.", printable(wanted, 64)));
    }
    use.choice = ToolUse::Choice::kMust;
    use.names = {wanted};
  }
  use.tools = *tools;
  return use;
}

std::string read_answer_grammar(const Document& body, const ToolUse& tools, AnswerStyle style, bool begins_in_thought) {
  const auto schema = wanted_schema(body);
  if (!schema && tools.choice != ToolUse::Choice::kMust) return {};
  std::vector<Document> answers;
  if (tools.choice != ToolUse::Choice::kNone) {
    for (std::size_t i = 0; i < tools.tools.items.size(); ++i) {
      const Document& function = tool_function(tools.tools.items[i], i);
      const std::string& name = given_field(function, "name")->text;
      if (std::find(tools.names.begin(), tools.names.end(), name) == tools.names.end()) continue;
      answers.push_back(call_grammar(function, style.tools));
    }
  }
  if (schema && tools.choice != ToolUse::Choice::kMust) {
    const Document json = part("schema", *schema);
    const bool is_harmony = style.tools == ToolStyle::kHarmony;
    answers.push_back(is_harmony ? sequence({special("<|channel|>"), literal("final"), special("<|message|>"), json})
                                 : json);
  }
  const std::string source =
      print_json(after_thoughts(any_of(std::move(answers)), style, begins_in_thought), JsonLayout::kOneLine);
  try {
    text::read_grammar(std::string_view(source));
  } catch (const Error& error) {
    const std::string param = tools.choice == ToolUse::Choice::kMust ? "tools" : "response_format";
    throw ApiError(400, fmt::format("Invalid schema for '{}': {}.", param, error.message()), param,
                   "invalid_json_schema");
  }
  return source;
}

}  // namespace yoke::serve
