#include "yoke/text/tokenizer_parts.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/text/components.h"
#include "yoke/text/tokenizer_file.h"

namespace yoke::text {
namespace {

const Document& part(const TokenizerFile& file, std::string_view key) {
  static const Document kAbsent;
  const Document* found = file.parts.find(key);
  return found ? *found : kAbsent;
}

MergeTable read_merges(const MergeTexts& texts, const Vocabulary& vocabulary, const std::string& source) {
  MergeTable merges;
  merges.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto known = [&](std::string_view token) {
      const auto id = vocabulary.find(token);
      if (id) return *id;
      throw Error(ErrorCode::kInvalid,
                  fmt::format("{}: model.merges[{}]: a merge needs '{}', which is not in the vocabulary", source, i,
                              printable(token, 60)));
    };
    const TokenId left = known(texts.left(i));
    const TokenId right = known(texts.right(i));
    merges.add(left, right, known(texts.both(i)));
  }
  return merges;
}

BpeOptions read_options(const Document& settings, const Vocabulary& vocabulary) {
  if (!text_setting(settings, "continuing_subword_prefix", "").empty()) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: continuing_subword_prefix is not supported", settings.where));
  }
  BpeOptions options{.ignore_merges = flag_setting(settings, "ignore_merges", false),
                     .byte_fallback = flag_setting(settings, "byte_fallback", false),
                     .fuse_unknown = flag_setting(settings, "fuse_unk", false),
                     .end_of_word = is_null(settings.find("end_of_word_suffix"))
                                        ? std::string()
                                        : mark_setting(settings, "end_of_word_suffix")};
  if (const std::string unknown = text_setting(settings, "unk_token", ""); !unknown.empty()) {
    options.unknown = vocabulary.find(unknown);
  }
  return options;
}

void read_added_tokens(const Document& list, const Normalizer& normalizer, Vocabulary& added,
                       std::vector<bool>& special, AddedTokens& raw, AddedTokens& normalized) {
  if (is_null(&list)) return;
  if (list.kind != Document::Kind::kList) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: this must be a list", list.where));
  }
  if (list.items.size() > limits::kAddedTokens) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: there are {} added tokens, more than {}", list.where,
                                                 list.items.size(), limits::kAddedTokens));
  }
  // One budget for all: each may be short, and slow to normalize.
  TextBudget budget(limits::kAddedTokenBytes);
  for (const Document& item : list.items) {
    AddedToken token = read_added_token(item);
    if (!added.add(token.content, token.id)) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: the added token '{}' or its id {} stands twice", item.where,
                                                   printable(token.content, 60), token.id));
    }
    const auto index = static_cast<std::size_t>(token.id);
    if (special.size() <= index) special.resize(index + 1);
    special[index] = token.special;
    const bool in_normalized_text = token.normalized && !token.special;
    if (in_normalized_text) token.content = normalizer.apply(std::move(token.content), budget);
    if (!token.content.empty()) (in_normalized_text ? normalized : raw).add(std::move(token));
  }
}

}  // namespace

std::unique_ptr<const Tokenizer::Parts> Tokenizer::Parts::read(std::string json, const std::string& source) {
  TokenizerFile file = read_tokenizer_file(std::move(json), source);
  // Files of before 2021 do not say the type of the model.
  if (text_setting(file.model, "type", "BPE") != "BPE") refuse_component(file.model, "model");
  if (!file.has_vocabulary || !file.has_merges) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a BPE model needs 'vocab' and 'merges'", source));
  }
  auto parts = std::make_unique<Parts>();
  parts->vocabulary = std::move(file.vocabulary);
  parts->normalizer = Normalizer::read(part(file, "normalizer"));
  parts->pre_tokenizer = PreTokenizer::read(part(file, "pre_tokenizer"));
  parts->decoder = Decoder::read(part(file, "decoder"));
  read_added_tokens(part(file, "added_tokens"), parts->normalizer, parts->added, parts->special, parts->raw_tokens,
                    parts->normalized_tokens);
  BpeOptions options = read_options(file.model, parts->vocabulary);
  options.special = parts->special;
  parts->bpe.emplace(parts->vocabulary, read_merges(file.merges, parts->vocabulary, source), std::move(options));
  parts->post_processor =
      read_post_processor(part(file, "post_processor"), [&](TokenId id) { return parts->contains(id); });
  return parts;
}

}  // namespace yoke::text
