// Tokenizers for tests: the golden one of Llama 3 kind, and a small one of Llama 2 kind made here.
#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "yoke/base/document.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/text/tokenizer.h"

namespace yoke::text {

inline const std::filesystem::path kTokenizerGolden = std::filesystem::path(YOKE_SOURCE_DIR) / "tests/golden/tokenizer";

inline const Tokenizer& golden_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(kTokenizerGolden / "tokenizer.json");
  return tokenizer;
}

inline Document golden_document(const std::filesystem::path& file) {
  return parse_json(read_file(kTokenizerGolden / file), file.string());
}

// Byte fallback: ids 0 to 2 are <unk>, <s>, </s>, 3 to 258 the bytes, then '▁' (259), "a" to "e" (260 to 264), and
// merges: "ab" 265, "▁ab" 266, "▁c" 267. `steps` are the normalizer, pre-tokenizer and decoder.
inline std::string llama_2_kind(const std::string& steps) {
  Document vocabulary = Document::map();
  TokenId next = 0;
  const auto add = [&](std::string token) { vocabulary.add(std::move(token), Document::number(std::int64_t{next++})); };
  for (const char* token : {"<unk>", "<s>", "</s>"}) add(token);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const char* token : {"▁", "a", "b", "c", "d", "e", "ab", "▁ab", "▁c"}) add(token);
  return fmt::format(
      R"({{"added_tokens": [{{"id": 0, "content": "<unk>", "special": true, "normalized": true}},
        {{"id": 1, "content": "<s>", "special": true, "normalized": true}},
        {{"id": 2, "content": "</s>", "special": true, "normalized": true}}],
      "post_processor": {{"type": "TemplateProcessing", "single": [{{"SpecialToken": {{"id": "<s>", "type_id": 0}}}},
        {{"Sequence": {{"id": "A", "type_id": 0}}}}], "special_tokens": {{"<s>": {{"id": "<s>", "ids": [1]}}}}}},
      {}, "model": {{"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
        "merges": ["a b", ["▁", "ab"], "▁ c"], "vocab": {}}}}})",
      steps, print_json(vocabulary));
}

inline const std::string kLlama2Steps =
    R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "pre_tokenizer": null,
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

}  // namespace yoke::text
