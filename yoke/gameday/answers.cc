#include "yoke/gameday/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke::gameday {
namespace {

const Document& must_find(const Document& answer, std::string_view path, Document::Kind kind) {
  const Document* const found = find_at(answer, path);
  if (found && found->kind == kind) return *found;
  throw Error(ErrorCode::kInvalid, fmt::format("the answer has no '{}' that is {}", path, yoke::to_string(kind)),
              "is this program of one version?");
}

}  // namespace

const Document* find_at(const Document& answer, std::string_view path) {
  const Document* at = &answer;
  for (const std::string& word : split(path, '.')) {
    if (at->kind == Document::Kind::kList) {
      std::size_t place = 0;
      const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), place);
      const bool whole = failure == std::errc{} && end == word.data() + word.size();
      at = whole && place < at->items.size() ? &at->items[place] : nullptr;
    } else {
      at = at->find(word);
    }
    if (!at) return nullptr;
  }
  return at;
}

const Document& list_at(const Document& answer, std::string_view path) {
  return must_find(answer, path, Document::Kind::kList);
}

double number_at(const Document& answer, std::string_view path) {
  return from_json<double>(must_find(answer, path, Document::Kind::kNumber));
}

std::string text_at(const Document& answer, std::string_view path) {
  return must_find(answer, path, Document::Kind::kText).text;
}

}  // namespace yoke::gameday
