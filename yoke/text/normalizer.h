// What a tokenizer does to a text before it splits it: Unicode forms, case, a mark put in front, replacements. Read
// from the "normalizer" of a tokenizer.json; a piece that is not known is kUnsupported and named. Immutable once read.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/pattern.h"
#include "yoke/text/text_budget.h"

namespace yoke::text {

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  static Normalizer read(const Document& document);

  std::string apply(std::string text, TextBudget& budget) const;

 private:
  using Step = std::function<std::string(std::string, TextBudget&)>;
  void add(const Document& document);
  std::vector<Step> steps_;
};

// {"String": "…"} or {"Regex": "…"}, as normalizers, pre-tokenizers and decoders hold it.
Pattern read_pattern(const Document& document);

}  // namespace yoke::text
