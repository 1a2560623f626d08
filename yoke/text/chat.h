// A conversation to the text that a model was trained to continue, by the chat template of its folder.
//
//   const ChatTemplate chat = ChatTemplate::load(model_folder);
//   const std::vector<Segment> text = chat.render(parse_json(R"([{"role": "user", "content": "Hi"}])", "request"));
//   const std::vector<TokenId> ids = tokenizer.encode(text);
//
// What comes from messages, tools and variables is marked as a user's: it never becomes special tokens. Immutable once
// read: any thread may render.
#pragma once
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/jinja/template.h"
#include "yoke/text/segment.h"

namespace yoke::text {

// bos_token, eos_token and their kind, each with its text: of tokenizer_config.json, and where that names none of
// special_tokens_map.json, the only place in older folders.
Document read_special_tokens(const std::filesystem::path& model_folder);

struct ChatOptions {
  Document tools;                // a list of tools as the OpenAI API has them, or null
  Document documents;            // a list of documents to answer from, as the template wants them, or null
  Document variables;            // a map of further variables such as enable_thinking, or null
  std::optional<std::tm> clock;  // what strftime_now prints; the local time where it is not given
  jinja::Limits limits;
};

class ChatTemplate {
 public:
  // chat_template.jinja, or the template in tokenizer_config.json. kNotFound where the folder has neither.
  static ChatTemplate load(const std::filesystem::path& model_folder);
  // `special_tokens` is a map of names such as bos_token to their texts.
  static ChatTemplate parse(std::string_view source, std::string name, const Document& special_tokens = {});

  // `messages` is a list of maps with role and content. What the template refuses is kInvalid.
  std::vector<Segment> render(const Document& messages, const ChatOptions& options = {}) const;
  // As it is written, also what it has for tools: tells how the model marks calls and thoughts (answer_parts.h).
  const std::string& source() const { return text_; }

 private:
  ChatTemplate(std::string text, jinja::Template source, jinja::Value special_tokens)
      : text_(std::move(text)), source_(std::move(source)), special_tokens_(std::move(special_tokens)) {}

  std::string text_;
  jinja::Template source_;
  std::optional<jinja::Template> with_tools_;  // some models have another template for tools
  jinja::Value special_tokens_;
};

}  // namespace yoke::text
