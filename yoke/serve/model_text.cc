#include "yoke/serve/model_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"

namespace yoke::serve {
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
  if (const Document* found = given(map, key)) from_json(*found, value);
}

// A number, or a list of them.
void add_stop_ids(const Document& config, std::vector<text::TokenId>& ids) {
  const Document* found = given(config, "eos_token_id");
  if (!found) return;
  const bool is_list = found->kind == Document::Kind::kList;
  const auto more =
      is_list ? from_json<std::vector<text::TokenId>>(*found) : std::vector{from_json<text::TokenId>(*found)};
  ids.insert(ids.end(), more.begin(), more.end());
}

void add_tokenizer_stop(const fs::path& folder, const text::Tokenizer& tokenizer, std::vector<text::TokenId>& ids) {
  const Document tokens = text::read_special_tokens(folder);
  const Document* token = tokens.find("eos_token");
  if (!token) return;
  if (const auto id = tokenizer.find(token->text)) ids.push_back(*id);
}

[[noreturn]] void refuse_setting(const Document& value, std::string_view why) {
  throw Error(ErrorCode::kInvalid, fmt::format("{} is {}: {}", value.where, value.text, why),
              "correct the value there, or remove the key");
}

// What no sampling takes is a mistake of the file: told with its place here, where nobody takes it for an option's.
template <class T>
void read_setting(const Document& config, std::string_view key, text::SamplingOptions& sampling,
                  T text::SamplingOptions::*value) {
  const Document* found = given(config, key);
  if (!found) return;
  from_json(*found, sampling.*value);
  // Other engines write -1 for all tokens.
  if (sampling.top_k == -1) sampling.top_k = 0;
  const auto checked = try_to([&] { text::check_sampling(sampling, text::Vocabulary::kMaxId); });
  if (!checked) refuse_setting(*found, checked.error().message());
}

text::SamplingOptions read_sampling(const Document& config) {
  text::SamplingOptions sampling{.temperature = 0};
  bool samples = given(config, "temperature") != nullptr;
  read_given(config, "do_sample", samples);
  read_setting(config, "repetition_penalty", sampling, &text::SamplingOptions::repetition_penalty);
  if (!samples) return sampling;
  sampling.temperature = 1;
  read_setting(config, "temperature", sampling, &text::SamplingOptions::temperature);
  read_setting(config, "top_k", sampling, &text::SamplingOptions::top_k);
  read_setting(config, "top_p", sampling, &text::SamplingOptions::top_p);
  read_setting(config, "min_p", sampling, &text::SamplingOptions::min_p);
  return sampling;
}

std::optional<std::int64_t> read_answer_max(const Document& config) {
  const Document* found = given(config, "max_new_tokens");
  if (!found) return std::nullopt;
  const auto max = from_json<std::int64_t>(*found);
  if (max < 0) refuse_setting(*found, "an answer has 0 tokens or more");
  return max;
}

text::Tokenizer load_tokenizer(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder / "tokenizer.json", ignored)) return text::Tokenizer::load(folder / "tokenizer.json");
  throw Error(ErrorCode::kNotFound, fmt::format("there is no tokenizer.json in '{}'", folder.native()),
              "without it a model only takes token ids: yoke run --ids 1,2,3");
}

}  // namespace

ModelText ModelText::load(const fs::path& folder, Need need) {
  check_folder(folder);
  ModelText text;
  const Document generation = read_optional(folder / "generation_config.json");
  add_stop_ids(generation, text.stop_ids);
  add_stop_ids(read_optional(folder / "config.json"), text.stop_ids);
  text.sampling = read_sampling(generation);
  text.answer_max = read_answer_max(generation);
  text.tokenizer = try_to([&] { return load_tokenizer(folder); });
  if (!text.tokenizer && need == Need::kTokenizer) throw Error(text.tokenizer.error());
  if (text.tokenizer) add_tokenizer_stop(folder, *text.tokenizer, text.stop_ids);
  text.chat = try_to([&] { return text::ChatTemplate::load(folder); });
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

std::vector<text::TokenId> ModelText::encode_raw(std::string_view text) const {
  if (!tokenizer) throw Error(tokenizer.error());
  check_utf8(text, "the prompt");
  return tokenizer->encode(text, {.frame = text::Frame::kAdd});
}

std::vector<text::TokenId> ModelText::encode_chat(const Document& messages) const {
  if (!tokenizer) throw Error(tokenizer.error());
  if (!chat) throw Error(chat.error());
  return tokenizer->encode(chat->render(messages));
}

Document chat_message(std::string role, std::string content) {
  return Document::map(
      {{"role", Document::string(std::move(role))}, {"content", Document::string(std::move(content))}});
}

}  // namespace yoke::serve
