#include "yoke/text/tokenizer_parts.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/components.h"
#include "yoke/text/json_scan.h"

namespace yoke {
namespace {

// The file in two steps: first where its large parts stand and what its small parts say, in whatever order, ...
struct ModelText {
  std::optional<JsonScan> vocabulary;
  std::optional<JsonScan> merges;
  Document settings = Document::map();
};
struct FileText {
  std::optional<ModelText> model;
  Document parts = Document::map();
};

ModelText read_model_text(JsonScan& scan, const std::string& source) {
  ModelText model;
  model.settings.where = source + ": model";
  scan.for_each_field([&](std::string key) {
    if (key == "vocab" || key == "merges") {
      (key == "vocab" ? model.vocabulary : model.merges) = scan;
      scan.skip();
    } else {
      model.settings.add(std::move(key), scan.document());
    }
  });
  return model;
}

FileText read_file_text(std::string_view json, const std::string& source) {
  FileText file;
  file.parts.where = source;
  JsonScan scan(json, source);
  scan.for_each_field([&](std::string key) {
    if (key == "model") {
      file.model = read_model_text(scan, source);
    } else {
      Document part = scan.document();
      part.where = fmt::format("{}: {}", source, printable(key, 60));
      file.parts.add(std::move(key), std::move(part));
    }
  });
  scan.end();
  if (!file.model) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key 'model' is missing", source));
  return file;
}

const Document& part(const FileText& file, std::string_view key) {
  static const Document kAbsent;
  const Document* found = file.parts.find(key);
  return found ? *found : kAbsent;
}

// ... then the parts, each from those before.
void read_vocabulary(JsonScan scan, Vocabulary& vocabulary) {
  scan.for_each_field([&](std::string token) {
    const std::int64_t id = scan.whole_number();
    if (id < 0 || id > Vocabulary::kIdMost)
      scan.refuse(fmt::format("a token's id must be from 0 to {}", Vocabulary::kIdMost));
    if (!vocabulary.add(token, static_cast<TokenId>(id))) {
      scan.refuse(fmt::format("the token '{}' or its id {} stands twice", printable(token, 60), id));
    }
  });
}

MergeTable read_merges(JsonScan scan, const Vocabulary& vocabulary) {
  MergeTable merges;
  merges.reserve(static_cast<std::size_t>(vocabulary.size()));
  const auto known = [&](const std::string& token) {
    const auto id = vocabulary.find(token);
    if (!id) scan.refuse(fmt::format("a merge needs '{}', which is not in the vocabulary", printable(token, 60)));
    return *id;
  };
  scan.for_each_item([&] {
    std::vector<std::string> pair;  // ["a", "b"], or in older files "a b"
    if (scan.at_list()) {
      scan.for_each_item([&] { pair.push_back(scan.text()); });
    } else {
      pair = split(scan.text(), ' ');
    }
    if (pair.size() != 2) scan.refuse("a merge must be of two tokens");
    const TokenId left = known(pair[0]);
    const TokenId right = known(pair[1]);
    merges.add(left, right, known(pair[0] + pair[1]));
  });
  return merges;
}

BpeOptions read_options(const Document& settings, const Vocabulary& vocabulary) {
  if (!text_setting(settings, "continuing_subword_prefix", "").empty()) {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: continuing_subword_prefix is not supported", settings.where));
  }
  BpeOptions options{.ignore_merges = flag_setting(settings, "ignore_merges", false),
                     .byte_fallback = flag_setting(settings, "byte_fallback", false),
                     .fuse_unknown = flag_setting(settings, "fuse_unk", false),
                     .end_of_word = text_setting(settings, "end_of_word_suffix", "")};
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
    if (in_normalized_text) token.content = normalizer.apply(std::move(token.content));
    if (!token.content.empty()) (in_normalized_text ? normalized : raw).add(std::move(token));
  }
}

}  // namespace

std::unique_ptr<const Tokenizer::Parts> Tokenizer::Parts::read(std::string_view json, const std::string& source) {
  const FileText file = read_file_text(json, source);
  const ModelText& model = *file.model;
  // Files of before 2021 do not say the type of the model.
  if (text_setting(model.settings, "type", "BPE") != "BPE") refuse_component(model.settings, "model");
  if (!model.vocabulary || !model.merges) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a BPE model needs 'vocab' and 'merges'", source));
  }
  auto parts = std::make_unique<Parts>();
  read_vocabulary(*model.vocabulary, parts->vocabulary);
  parts->normalizer = Normalizer::read(part(file, "normalizer"));
  parts->pre_tokenizer = PreTokenizer::read(part(file, "pre_tokenizer"));
  parts->decoder = Decoder::read(part(file, "decoder"));
  read_added_tokens(part(file, "added_tokens"), parts->normalizer, parts->added, parts->special, parts->raw_tokens,
                    parts->normalized_tokens);
  BpeOptions options = read_options(model.settings, parts->vocabulary);
  options.special = parts->special;
  parts->bpe.emplace(parts->vocabulary, read_merges(*model.merges, parts->vocabulary), std::move(options));
  parts->post_processor =
      read_post_processor(part(file, "post_processor"), [&](TokenId id) { return parts->contains(id); });
  return parts;
}

}  // namespace yoke
