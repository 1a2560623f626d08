#include "yoke/serve/model_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

void check_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no model folder '{}'", folder.native()),
                "give the path of a folder with config.json and *.safetensors");
  }
  if (!fs::is_directory(folder, ignored) || !fs::exists(folder / "config.json", ignored)) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("'{}' is no model folder: there is no config.json in it", folder.native()),
                "a model is a folder with config.json, tokenizer.json and *.safetensors, as Hugging Face has them");
  }
}

Document read_optional(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Document::map();
  Document document = parse_json(read_file(file), file.native());
  if (document.kind != Document::Kind::kMap) refuse_field(document, "a map of keys");
  return document;
}

// The key's value where it is given, and not as null.
const Document* given(const Document& map, std::string_view key) {
  const Document* found = map.find(key);
  return found && found->kind != Document::Kind::kNull ? found : nullptr;
}

template <class T>
void read_given(const Document& map, std::string_view key, T& value) {
  if (const Document* found = given(map, key)) read_field(*found, value);
}

// A number, or a list of them.
void add_stop_ids(const Document& config, std::vector<TokenId>& ids) {
  const Document* found = given(config, "eos_token_id");
  if (!found) return;
  const bool is_list = found->kind == Document::Kind::kList;
  const auto more = is_list ? from_document<std::vector<TokenId>>(*found) : std::vector{from_document<TokenId>(*found)};
  ids.insert(ids.end(), more.begin(), more.end());
}

void add_tokenizer_stop(const Document& config, const Tokenizer& tokenizer, std::vector<TokenId>& ids) {
  const Document* token = given(config, "eos_token");
  if (token && token->kind == Document::Kind::kMap) token = given(*token, "content");
  if (!token) return;
  if (const auto id = tokenizer.find(from_document<std::string>(*token))) ids.push_back(*id);
}

SamplingOptions read_sampling(const Document& config) {
  SamplingOptions sampling{.temperature = 0};
  bool samples = given(config, "temperature") != nullptr;
  read_given(config, "do_sample", samples);
  read_given(config, "repetition_penalty", sampling.repetition_penalty);
  if (!samples) return sampling;
  sampling.temperature = 1;
  read_given(config, "temperature", sampling.temperature);
  read_given(config, "top_k", sampling.top_k);
  read_given(config, "top_p", sampling.top_p);
  read_given(config, "min_p", sampling.min_p);
  return sampling;
}

}  // namespace

ModelText ModelText::load(const fs::path& folder, Need need) {
  check_folder(folder);
  ModelText text;
  const Document generation = read_optional(folder / "generation_config.json");
  add_stop_ids(generation, text.stop_ids);
  add_stop_ids(read_optional(folder / "config.json"), text.stop_ids);
  text.sampling = read_sampling(generation);
  if (const Document* most = given(generation, "max_new_tokens")) text.answer_most = from_document<std::int64_t>(*most);
  std::error_code ignored;
  if (fs::exists(folder / "tokenizer.json", ignored)) {
    text.tokenizer = Tokenizer::load(folder / "tokenizer.json");
    add_tokenizer_stop(read_optional(folder / "tokenizer_config.json"), *text.tokenizer, text.stop_ids);
    auto chat = try_to([&] { return ChatTemplate::load(folder); });
    if (!chat && chat.error().code() != ErrorCode::kNotFound) throw Error(chat.error());
    if (chat) text.chat = *std::move(chat);
  } else if (need == Need::kTokenizer) {
    throw Error(ErrorCode::kNotFound, fmt::format("there is no tokenizer.json in '{}'", folder.native()),
                "without it a model only takes token ids: yoke run --ids 1,2,3");
  }
  std::sort(text.stop_ids.begin(), text.stop_ids.end());
  text.stop_ids.erase(std::unique(text.stop_ids.begin(), text.stop_ids.end()), text.stop_ids.end());
  return text;
}

void check_utf8(std::string_view text, std::string_view what) {
  if (const auto at = find_invalid_utf8(text)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not UTF-8: byte {} of {} is wrong", what, *at + 1, text.size()),
                "convert it, for example with 'iconv -t UTF-8'");
  }
}

std::vector<TokenId> ModelText::encode_raw(std::string_view text) const {
  YOKE_CHECK(tokenizer.has_value());
  check_utf8(text, "the prompt");
  return tokenizer->encode(text, {.frame = Frame::kAdd});
}

std::vector<TokenId> ModelText::encode_chat(const Document& messages) const {
  YOKE_CHECK(tokenizer.has_value() && chat.has_value());
  return tokenizer->encode(chat->render(messages));
}

Document chat_message(std::string role, std::string content) {
  return Document::map(
      {{"role", Document::string(std::move(role))}, {"content", Document::string(std::move(content))}});
}

}  // namespace yoke
