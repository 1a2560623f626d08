#include "yoke/text/chat.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/text/components.h"

namespace yoke::text {
namespace {

using jinja::Value;

// A special token stands as a text, or as a map with its text as "content".
void add_special_tokens(const Document& file, Document& tokens) {
  for (const auto& [name, value] : file.fields) {
    if (!name.ends_with("_token") || tokens.find(name)) continue;
    if (tokens.fields.size() >= limits::kSpecialTokens) {
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{}: more than {} special tokens are named", file.where, limits::kSpecialTokens));
    }
    const Document* content = value.kind == Document::Kind::kMap ? value.find("content") : &value;
    if (content && content->kind == Document::Kind::kText) tokens.add(name, *content);
  }
}

Document read_if_there(const std::filesystem::path& file) {
  return std::filesystem::exists(file) ? parse_json(read_file(file), file.string()) : Document::map();
}

std::string named_template(const Document& templates, std::string_view name) {
  if (templates.kind != Document::Kind::kList) return {};
  for (const Document& entry : templates.items) {
    if (text_setting(entry, "name") == name) return text_setting(entry, "template");
  }
  return {};
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace

Document read_special_tokens(const std::filesystem::path& model_folder) {
  Document tokens = Document::map();
  add_special_tokens(read_if_there(model_folder / "tokenizer_config.json"), tokens);
  add_special_tokens(read_if_there(model_folder / "special_tokens_map.json"), tokens);
  return tokens;
}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name, const Document& special_tokens) {
  const Document tokens = special_tokens.kind == Document::Kind::kMap ? special_tokens : Document::map();
  return {std::string(source), jinja::Template::parse(source, std::move(name)),
          Value::from_document(tokens, Origin::kTemplate)};
}

ChatTemplate ChatTemplate::load(const std::filesystem::path& model_folder) {
  const auto config_file = model_folder / "tokenizer_config.json";
  const auto template_file = model_folder / "chat_template.jinja";
  const Document config = read_if_there(config_file);
  const Document tokens = read_special_tokens(model_folder);
  if (std::filesystem::exists(template_file)) return parse(read_file(template_file), template_file.string(), tokens);
  const Document* given = config.find("chat_template");
  if (is_null(given)) {
    throw Error(ErrorCode::kNotFound, fmt::format("{} has no chat template", model_folder.string()),
                "this is a model for plain text: give it a prompt instead of messages");
  }
  const std::string name = config_file.string() + ": chat_template";
  if (given->kind == Document::Kind::kText) return parse(given->text, name, tokens);
  const std::string plain = named_template(*given, "default");
  if (plain.empty()) throw Error(ErrorCode::kInvalid, fmt::format("{} has no template named 'default'", name));
  ChatTemplate chat = parse(plain, name, tokens);
  if (const std::string tool_use = named_template(*given, "tool_use"); !tool_use.empty()) {
    chat.text_ += tool_use;
    chat.with_tools_ = jinja::Template::parse(tool_use, name + " (tool_use)");
  }
  return chat;
}

std::vector<Segment> ChatTemplate::render(const Document& messages, const ChatOptions& options) const {
  if (messages.kind != Document::Kind::kList) refuse_field(messages, "a list of messages");
  std::vector<std::pair<Value, Value>> variables;
  const auto add = [&](const std::string& name, Value value) {
    variables.emplace_back(Value::text(name, Origin::kTemplate), std::move(value));
  };
  if (options.variables.kind == Document::Kind::kMap) {
    for (const auto& [name, value] : options.variables.fields) add(name, Value::from_document(value, Origin::kUser));
  }
  // These come last and win, so that no variable of a request can take the place of a special token.
  for (const auto& [name, value] : special_tokens_.as_map()->entries) add(name.as_text()->text(), value);
  add("messages", Value::from_document(messages, Origin::kUser));
  add("tools", Value::from_document(options.tools, Origin::kUser));
  add("documents", Value::from_document(options.documents, Origin::kUser));
  add("add_generation_prompt", Value::boolean(true));  // an answer follows
  const bool uses_tools = with_tools_ && !is_null(&options.tools);
  const jinja::Template& source = uses_tools ? *with_tools_ : source_;
  const std::tm clock = options.clock ? *options.clock : local_time();
  return source.render(Value::map(std::move(variables)), clock, options.limits).segments();
}

}  // namespace yoke::text
