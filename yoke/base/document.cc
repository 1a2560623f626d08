#include "yoke/base/document.h"

#include <fmt/format.h>

#include <cmath>

namespace yoke {

Document Document::boolean(bool value) { return {.kind = Kind::kBool, .text = value ? "true" : "false"}; }
Document Document::number(std::int64_t value) { return {.kind = Kind::kNumber, .text = fmt::format("{}", value)}; }
Document Document::number(double value) {
  if (!std::isfinite(value)) return null();
  return {.kind = Kind::kNumber, .text = fmt::format("{}", value)};
}
Document Document::string(std::string value) { return {.kind = Kind::kText, .text = std::move(value)}; }
Document Document::list(std::vector<Document> items) { return {.kind = Kind::kList, .items = std::move(items)}; }
Document Document::map(std::vector<Field> fields) { return {.kind = Kind::kMap, .fields = std::move(fields)}; }

const Document* Document::find(std::string_view key) const {
  for (const Field& field : fields) {
    if (field.first == key) return &field.second;
  }
  return nullptr;
}

std::string_view to_string(Document::Kind kind) {
  switch (kind) {
    case Document::Kind::kNull:
      return "nothing";
    case Document::Kind::kBool:
      return "true or false";
    case Document::Kind::kNumber:
      return "a number";
    case Document::Kind::kText:
      return "a text";
    case Document::Kind::kPlain:
      return "a single value";
    case Document::Kind::kList:
      return "a list";
    case Document::Kind::kMap:
      return "a map of keys";
  }
  return "an unknown kind";
}

}  // namespace yoke
