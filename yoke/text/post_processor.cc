#include "yoke/text/post_processor.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/limits.h"
#include "yoke/text/components.h"

namespace yoke::text {
namespace {

using IsToken = std::function<bool(TokenId)>;

TokenId known_id(const Document& document, const IsToken& is_token) {
  const auto id = from_json<TokenId>(document);
  if (!is_token(id)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the vocabulary has no token {}", document.where, id));
  }
  return id;
}

void put_around(const Document& document, const std::vector<TokenId>& before, const std::vector<TokenId>& after,
                PostProcessor& around) {
  const std::size_t tokens = around.before.size() + around.after.size() + before.size() + after.size();
  if (tokens > limits::kTokensAround) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: more than {} tokens are put around a text", document.where, limits::kTokensAround));
  }
  around.before.insert(around.before.begin(), before.begin(), before.end());
  around.after.insert(around.after.end(), after.begin(), after.end());
}

// "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], and "special_tokens": {"<s>": {"ids": [1]}}.
void add_template(const Document& document, const IsToken& is_token, PostProcessor& around) {
  const Document& special_tokens = required(document, "special_tokens");
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  int sequences = 0;
  for (const Document& item : sequence_items(document, "single")) {
    if (item.find("Sequence")) {
      ++sequences;
      continue;
    }
    const std::string name = text_setting(required(item, "SpecialToken"), "id");
    for (const Document& id : sequence_items(required(special_tokens, name), "ids")) {
      (sequences == 0 ? before : after).push_back(known_id(id, is_token));
    }
  }
  if (sequences != 1) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: a template that holds the text {} times is not supported", document.where, sequences));
  }
  put_around(document, before, after, around);
}

// "cls": ["<s>", 0]
TokenId paired_id(const Document& document, std::string_view key, const IsToken& is_token) {
  const std::vector<Document>& pair = sequence_items(document, key);
  if (pair.size() != 2) refuse_field(required(document, key), "a token and its id");
  return known_id(pair[1], is_token);
}

void add(const Document& document, const IsToken& is_token, PostProcessor& around) {
  const std::string type = component_type(document);
  if (type == "Sequence") {
    for (const Document& part : sequence_items(document, "processors")) add(part, is_token, around);
  } else if (type == "TemplateProcessing") {
    add_template(document, is_token, around);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    put_around(document, {paired_id(document, "cls", is_token)}, {paired_id(document, "sep", is_token)}, around);
  } else if (type != "ByteLevel") {  // which changes offsets into the text only
    refuse_component(document, "post-processor");
  }
}

}  // namespace

PostProcessor read_post_processor(const Document& document, const IsToken& is_token) {
  PostProcessor around;
  if (!is_null(&document)) add(document, is_token, around);
  return around;
}

}  // namespace yoke::text
