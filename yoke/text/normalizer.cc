#include "yoke/text/normalizer.h"

#include <map>

#include "yoke/base/error.h"
#include "yoke/text/components.h"
#include "yoke/text/unicode.h"

namespace yoke::text {

Pattern read_pattern(const Document& document) {
  if (const Document* literal = document.find("String"); literal && !literal->text.empty()) {
    return Pattern::literal(text_setting(document, "String"));
  }
  return Pattern::regex(text_setting(document, "Regex"), std::string(document.where));
}

Normalizer Normalizer::read(const Document& document) {
  Normalizer normalizer;
  if (!is_null(&document)) normalizer.add(document);
  return normalizer;
}

void Normalizer::add(const Document& document) {
  static const std::map<std::string, NormalForm, std::less<>> kForms = {
      {"NFC", NormalForm::kNfc}, {"NFD", NormalForm::kNfd}, {"NFKC", NormalForm::kNfkc}, {"NFKD", NormalForm::kNfkd}};
  const std::string type = component_type(document);
  check_steps(steps_.size(), document);
  if (type == "Sequence") {
    for (const Document& part : sequence_items(document, "normalizers")) add(part);
  } else if (const auto form = kForms.find(type); form != kForms.end()) {
    steps_.push_back([wanted = form->second](std::string text, TextBudget&) { return normalize(text, wanted); });
  } else if (type == "Lowercase") {
    steps_.push_back([](std::string text, TextBudget&) { return lower_case(text); });
  } else if (type == "Prepend") {
    steps_.push_back([mark = mark_setting(document, "prepend")](std::string text, TextBudget&) {
      return text.empty() ? text : mark + text;
    });
  } else if (type == "Replace") {
    steps_.push_back([pattern = read_pattern(required(document, "pattern")),
                      content = mark_setting(document, "content")](std::string text, TextBudget& budget) {
      return pattern.replace_all(text, content, budget.bytes_max(), budget.cpu());
    });
  } else if (type == "Strip") {
    const bool left = flag_setting(document, "strip_left", true);
    const bool right = flag_setting(document, "strip_right", true);
    steps_.push_back([left, right](std::string text, TextBudget&) {
      std::string_view kept = text;
      if (left) kept = trim_start(kept);
      if (right) kept = trim_end(kept);
      return std::string(kept);
    });
  } else {
    refuse_component(document, "normalizer");
  }
}

std::string Normalizer::apply(std::string text, TextBudget& budget) const {
  for (const Step& step : steps_) {
    text = step(std::move(text), budget);
    budget.check_size(text.size());
    budget.cpu().look();
  }
  return text;
}

}  // namespace yoke::text
