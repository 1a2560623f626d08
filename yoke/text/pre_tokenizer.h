// How a tokenizer cuts a text into the pieces that are encoded on their own: by a pattern, at spaces, into digits, and
// into the byte-level alphabet. Read from the "pre_tokenizer" of a tokenizer.json; a step that is not known is
// kUnsupported and named. Immutable once read.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/text_budget.h"

namespace yoke::text {

struct TextPiece {
  std::string text;
  bool starts_input = false;  // nothing stands before it, not even a special token
};

class PreTokenizer {
 public:
  PreTokenizer() = default;  // one piece
  static PreTokenizer read(const Document& document);

  std::vector<TextPiece> apply(TextPiece text, TextBudget& budget) const;

 private:
  // Takes a piece, appends what it becomes.
  using Step = std::function<void(TextPiece, std::vector<TextPiece>&, TextBudget&)>;
  void add(const Document& document);
  void add_byte_level(const Document& document);
  void add_metaspace(const Document& document);
  std::vector<Step> steps_;
};

}  // namespace yoke::text
