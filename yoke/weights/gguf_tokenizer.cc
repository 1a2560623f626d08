// The tokenizer of a GGUF file, as tokenizer.json of the tokenizers library, and what stands beside it.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"
#include "yoke/base/units.h"
#include "yoke/weights/import_gguf.h"

namespace yoke::weights {
namespace {

enum class TokenKind : std::int64_t { kNormal = 1, kUnknown, kControl, kUser, kUnused, kByte };

// How texts are cut before merging, by llama.cpp's names for it.
struct Splitting {
  const char* name;
  const char* pattern;  // empty: that of GPT-2, which the library has built in
  bool ignore_merges;
  bool is_nfc;
};
constexpr const char* kLlama3Pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)"
                                       R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)"
                                      R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr Splitting kSplittings[] = {
    {"llama-bpe", kLlama3Pattern, true, false},        {"llama3", kLlama3Pattern, true, false},
    {"llama-v3", kLlama3Pattern, true, false},         {"qwen2", kQwen2Pattern, false, true},
    {"deepseek-r1-qwen", kQwen2Pattern, false, false}, {"gpt-2", "", false, false}};

Document text_value(std::string value) { return Document::string(std::move(value)); }
Document typed(const char* type) { return Document::map({{"type", text_value(type)}}); }

class TokenizerMaker {
 public:
  explicit TokenizerMaker(const GgufFile& file) : file_(file), model_(file.required_text("tokenizer.ggml.model")) {
    const GgufList* const tokens = file.list("tokenizer.ggml.tokens");
    if (tokens == nullptr || tokens->texts.empty()) invalid("it has no tokens");
    tokens_ = &tokens->texts;
    check_size(*tokens_, limits::kImportedTokens, "tokens");
    if (const GgufList* const kinds = file.list("tokenizer.ggml.token_type")) kinds_ = &kinds->integers;
    if (kinds_ != nullptr && kinds_->size() != tokens_->size()) invalid("its tokens and their types differ in number");
    if (const GgufTensor* const table = file.find("token_embd.weight");
        table != nullptr && std::ssize(*tokens_) > table->rows) {
      invalid(fmt::format("it has {} tokens and an embedding of {}", tokens_->size(), table->rows));
    }
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      if (!ids_.emplace((*tokens_)[id], id).second) invalid(fmt::format("the token {} is there twice", id));
    }
  }

  GgufTokenizer make() const {
    Document out = Document::map({{"version", text_value("1.0")}, {"truncation", {}}, {"padding", {}}});
    out.add("added_tokens", added_tokens());
    if (model_ == "gpt2") {
      add_byte_level(out);
    } else if (model_ == "llama") {
      add_sentence_pieces(out);
    } else {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: its tokenizer is of the kind '{}'", file_.source(), printable(model_, 40)),
                  "yoke imports gpt2 (byte-level BPE) and llama (SentencePiece BPE)");
    }
    return {.tokenizer = print_json(out, JsonLayout::kOneLine) + "\n",
            .tokenizer_config = print_json(beside()) + "\n",
            .generation = print_json(generation()) + "\n"};
  }

 private:
  [[noreturn]] void invalid(const std::string& what) const {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {}", file_.source(), what), "make the file again");
  }
  void check_size(const std::vector<std::string_view>& texts, std::size_t most, const char* what) const {
    std::size_t bytes = 0;
    for (const std::string_view text : texts) bytes += text.size();
    if (texts.size() <= most && bytes <= limits::kImportedTextBytes) return;
    invalid(fmt::format("it has {} {} of {} bytes; yoke imports up to {} of {}", texts.size(), what, bytes, most,
                        to_string(Bytes{limits::kImportedTextBytes})));
  }
  TokenKind kind(std::size_t id) const {
    return kinds_ == nullptr ? TokenKind::kNormal : static_cast<TokenKind>((*kinds_)[id]);
  }
  std::optional<std::size_t> id_of(const char* key) const {
    const auto id = file_.integer(std::string("tokenizer.ggml.") + key);
    if (!id || *id < 0 || *id >= std::ssize(*tokens_)) return std::nullopt;
    return static_cast<std::size_t>(*id);
  }
  std::string token(std::size_t id) const { return std::string((*tokens_)[id]); }

  Document added_tokens() const {
    Document list = Document::list({});
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      if (kind(id) != TokenKind::kControl && kind(id) != TokenKind::kUser && kind(id) != TokenKind::kUnknown) continue;
      list.items.push_back(Document::map({{"id", Document::number(static_cast<std::int64_t>(id))},
                                          {"content", text_value(token(id))},
                                          {"single_word", Document::boolean(false)},
                                          {"lstrip", Document::boolean(false)},
                                          {"rstrip", Document::boolean(false)},
                                          {"normalized", Document::boolean(false)},
                                          {"special", Document::boolean(kind(id) != TokenKind::kUser)}}));
    }
    return list;
  }
  Document vocabulary() const {
    Document words = Document::map();
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      words.add(token(id), Document::number(static_cast<std::int64_t>(id)));
    }
    return words;
  }
  Document bpe(Document merges, bool ignore_merges, bool byte_fallback) const {
    Document unknown = Document::null();
    if (byte_fallback) {
      if (const auto id = id_of("unknown_token_id")) unknown = text_value(token(*id));
    }
    return Document::map({{"type", text_value("BPE")},
                          {"dropout", {}},
                          {"unk_token", std::move(unknown)},
                          {"continuing_subword_prefix", {}},
                          {"end_of_word_suffix", {}},
                          {"fuse_unk", Document::boolean(byte_fallback)},
                          {"byte_fallback", Document::boolean(byte_fallback)},
                          {"ignore_merges", Document::boolean(ignore_merges)},
                          {"vocab", vocabulary()},
                          {"merges", std::move(merges)}});
  }
  // What stands before a text, where the file says so.
  Document frame(bool by_default) const {
    const auto begin = id_of("bos_token_id");
    if (!begin || !file_.flag("tokenizer.ggml.add_bos_token").value_or(by_default)) return Document::null();
    const std::string name = token(*begin);
    const auto special = [&] {
      return Document::map({{"SpecialToken", Document::map({{"id", text_value(name)},
                                                            {"type_id", Document::number(std::int64_t{0})}})}});
    };
    const auto sequence = [](const char* which) {
      return Document::map(
          {{"Sequence", Document::map({{"id", text_value(which)}, {"type_id", Document::number(std::int64_t{0})}})}});
    };
    return Document::map(
        {{"type", text_value("TemplateProcessing")},
         {"single", Document::list({special(), sequence("A")})},
         {"pair", Document::list({special(), sequence("A"), special(), sequence("B")})},
         {"special_tokens",
          Document::map(
              {{name, Document::map({{"id", text_value(name)},
                                     {"ids", Document::list({Document::number(static_cast<std::int64_t>(*begin))})},
                                     {"tokens", Document::list({text_value(name)})}})}})}});
  }

  void add_byte_level(Document& out) const {
    const std::string name = file_.text("tokenizer.ggml.pre").value_or("gpt-2");
    const auto* const found = std::find_if(std::begin(kSplittings), std::end(kSplittings),
                                           [&](const Splitting& one) { return name == one.name; });
    if (found == std::end(kSplittings)) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: its tokenizer splits texts by '{}'", file_.source(), printable(name, 40)),
                  "yoke imports llama-bpe, qwen2, deepseek-r1-qwen and gpt-2");
    }
    const bool is_builtin = found->pattern[0] == '\0';
    Document bytes = Document::map({{"type", text_value("ByteLevel")},
                                    {"add_prefix_space", Document::boolean(false)},
                                    {"trim_offsets", Document::boolean(true)},
                                    {"use_regex", Document::boolean(is_builtin)}});
    Document split = Document::map({{"type", text_value("Split")},
                                    {"pattern", Document::map({{"Regex", text_value(found->pattern)}})},
                                    {"behavior", text_value("Isolated")},
                                    {"invert", Document::boolean(false)}});
    out.add("normalizer", found->is_nfc ? typed("NFC") : Document::null());
    out.add("pre_tokenizer", is_builtin ? bytes
                                        : Document::map({{"type", text_value("Sequence")},
                                                         {"pretokenizers", Document::list({split, bytes})}}));
    out.add("post_processor", frame(found->ignore_merges));
    out.add("decoder", typed("ByteLevel"));
    const GgufList* const merges = file_.list("tokenizer.ggml.merges");
    if (merges != nullptr) check_size(merges->texts, limits::kImportedMerges, "merges");
    Document list = Document::list({});
    for (const std::string_view merge : merges != nullptr ? merges->texts : std::vector<std::string_view>{}) {
      const std::size_t gap = merge.find(' ', 1);
      if (gap == std::string_view::npos) invalid("one of its merges is no pair");
      list.items.push_back(Document::list(
          {text_value(std::string(merge.substr(0, gap))), text_value(std::string(merge.substr(gap + 1)))}));
    }
    out.add("model", bpe(std::move(list), found->ignore_merges, false));
  }

  // SentencePiece keeps no merges but a score for each piece: every pair that makes a piece is a merge, the best scores
  // first, as the tokenizers library converts such models.
  Document merges_by_score() const {
    const GgufList* const scores = file_.list("tokenizer.ggml.scores");
    if (scores == nullptr || scores->reals.size() != tokens_->size()) invalid("its tokens have no scores");
    struct Merge {
      double score;
      std::size_t left, right;  // lengths in characters
      std::string_view whole;
      std::size_t cut;  // in bytes
    };
    const auto is_start = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; };
    std::vector<Merge> all;
    for (std::size_t id = 0; id < tokens_->size(); ++id) {
      const std::string_view piece = (*tokens_)[id];
      if (kind(id) != TokenKind::kNormal && kind(id) != TokenKind::kUser) continue;
      if (piece.size() > 256) continue;  // no such piece is made by merging
      const auto length = static_cast<std::size_t>(std::count_if(piece.begin(), piece.end(), is_start));
      std::vector<std::pair<std::pair<std::size_t, std::size_t>, Merge>> own;
      std::size_t characters = 0;
      for (std::size_t cut = 1; cut < piece.size(); ++cut) {
        if (!is_start(piece[cut])) continue;
        ++characters;
        const auto left = ids_.find(piece.substr(0, cut));
        const auto right = ids_.find(piece.substr(cut));
        if (left == ids_.end() || right == ids_.end()) continue;
        own.push_back(
            {{left->second, right->second}, {scores->reals[id], characters, length - characters, piece, cut}});
      }
      std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [ids, merge] : own) all.push_back(merge);
      if (id % 4096 == 0) throw_if_interrupted();
      if (all.size() > limits::kImportedMerges)
        invalid(fmt::format("its tokens make more than {} merges", limits::kImportedMerges));
    }
    std::stable_sort(all.begin(), all.end(), [](const Merge& a, const Merge& b) {
      return std::tie(a.score, a.left, a.right) > std::tie(b.score, b.left, b.right);
    });
    Document list = Document::list({});
    for (const Merge& merge : all) {
      list.items.push_back(Document::list({text_value(std::string(merge.whole.substr(0, merge.cut))),
                                           text_value(std::string(merge.whole.substr(merge.cut)))}));
    }
    return list;
  }
  void add_sentence_pieces(Document& out) const {
    const auto replaced = [](const char* from, const char* to) {
      return Document::map({{"type", text_value("Replace")},
                            {"pattern", Document::map({{"String", text_value(from)}})},
                            {"content", text_value(to)}});
    };
    const bool prefixes = file_.flag("tokenizer.ggml.add_space_prefix").value_or(true);
    Document steps = Document::list({});
    if (prefixes) steps.items.push_back(Document::map({{"type", text_value("Prepend")}, {"prepend", text_value("▁")}}));
    steps.items.push_back(replaced(" ", "▁"));
    out.add("normalizer", Document::map({{"type", text_value("Sequence")}, {"normalizers", std::move(steps)}}));
    out.add("pre_tokenizer", Document::null());
    out.add("post_processor", frame(true));
    Document decoders = Document::list({replaced("▁", " "), typed("ByteFallback"), typed("Fuse")});
    if (prefixes) {
      decoders.items.push_back(Document::map({{"type", text_value("Strip")},
                                              {"content", text_value(" ")},
                                              {"start", Document::number(std::int64_t{1})},
                                              {"stop", Document::number(std::int64_t{0})}}));
    }
    out.add("decoder", Document::map({{"type", text_value("Sequence")}, {"decoders", std::move(decoders)}}));
    out.add("model", bpe(merges_by_score(), false, true));
  }

  Document beside() const {
    Document config = Document::map({{"tokenizer_class", text_value("PreTrainedTokenizerFast")}});
    for (const auto& [name, key] :
         {std::pair{"bos_token", "bos_token_id"}, std::pair{"eos_token", "eos_token_id"},
          std::pair{"pad_token", "padding_token_id"}, std::pair{"unk_token", "unknown_token_id"}}) {
      if (const auto id = id_of(key)) config.add(name, text_value(token(*id)));
    }
    if (const auto chat = file_.text("tokenizer.chat_template")) config.add("chat_template", text_value(*chat));
    return config;
  }
  Document generation() const {
    Document config = Document::map();
    if (const auto id = id_of("bos_token_id")) {
      config.add("bos_token_id", Document::number(static_cast<std::int64_t>(*id)));
    }
    Document ends = Document::list({});
    for (const char* const key : {"eos_token_id", "eot_token_id"}) {
      const auto id = id_of(key);
      const Document number = id ? Document::number(static_cast<std::int64_t>(*id)) : Document::null();
      if (id && std::find(ends.items.begin(), ends.items.end(), number) == ends.items.end())
        ends.items.push_back(number);
    }
    if (!ends.items.empty()) config.add("eos_token_id", std::move(ends));
    return config;
  }

  const GgufFile& file_;
  std::string model_;
  const std::vector<std::string_view>* tokens_ = nullptr;
  const std::vector<std::int64_t>* kinds_ = nullptr;
  std::unordered_map<std::string_view, std::size_t> ids_;
};

}  // namespace

GgufTokenizer gguf_tokenizer(const GgufFile& file) { return TokenizerMaker(file).make(); }

}  // namespace yoke::weights
