// What a tokenizer.json says, in one walk over its text: the vocabulary as a table, the merges as texts, and every
// other part as a Document. Inside of tokenizer_parts.cc.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/vocabulary.h"

namespace yoke::text {

// Pairs of texts in the order of training, in one block: 500,000 take about 8 MB.
class MergeTexts {
 public:
  void add(std::string_view left, std::string_view right);
  std::size_t size() const { return ends_.size() / 2; }
  std::string_view left(std::size_t merge) const { return part(2 * merge); }
  std::string_view right(std::size_t merge) const { return part(2 * merge + 1); }
  std::string_view both(std::size_t merge) const;

 private:
  std::string_view part(std::size_t index) const;
  std::string texts_;
  std::vector<std::uint32_t> ends_;  // of each text in the block
};

struct TokenizerFile {
  Vocabulary vocabulary;
  MergeTexts merges;
  bool has_vocabulary = false;
  bool has_merges = false;
  Document model = Document::map();  // of the model but vocabulary and merges
  Document parts = Document::map();  // of the file but the model
};

// kInvalid where it is no JSON, or the model is not what a model is.
TokenizerFile read_tokenizer_file(std::string json, const std::string& source);

}  // namespace yoke::text
