#include "yoke/text/components.h"

#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/limits.h"

namespace yoke::text {

bool is_null(const Document* document) { return !document || document->kind == Document::Kind::kNull; }

const Document& required(const Document& map, std::string_view key) {
  if (map.kind != Document::Kind::kMap) refuse_field(map, "a map of keys");
  const Document* value = map.find(key);
  if (!value) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", map.where, key));
  return *value;
}

std::string component_type(const Document& component) { return from_json<std::string>(required(component, "type")); }

void refuse_component(const Document& component, std::string_view role) {
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: the {} '{}' is not supported", component.where, role, printable(component_type(component), 60)),
      "yoke reads byte-level BPE (Llama 3, Qwen, GPT-2) and byte-fallback BPE (Llama 2, Mistral)");
}

std::string text_setting(const Document& map, std::string_view key) {
  return from_json<std::string>(required(map, key));
}
std::string text_setting(const Document& map, std::string_view key, std::string_view otherwise) {
  const Document* value = map.find(key);
  return is_null(value) ? std::string(otherwise) : from_json<std::string>(*value);
}
std::string mark_setting(const Document& map, std::string_view key) {
  std::string mark = text_setting(map, key);
  if (mark.size() > limits::kTokenizerMarkBytes) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: the text '{}' has more than {} bytes", map.where, key, limits::kTokenizerMarkBytes));
  }
  return mark;
}
void check_steps(std::size_t steps, const Document& component) {
  if (steps < limits::kTokenizerSteps) return;
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: the tokenizer has more than {} steps", component.where, limits::kTokenizerSteps));
}
bool flag_setting(const Document& map, std::string_view key, bool otherwise) {
  const Document* value = map.find(key);
  return is_null(value) ? otherwise : from_json<bool>(*value);
}
std::int64_t number_setting(const Document& map, std::string_view key, std::optional<std::int64_t> otherwise) {
  const Document* value = map.find(key);
  if (is_null(value) && otherwise) return *otherwise;
  return from_json<std::int64_t>(required(map, key));
}

const std::vector<Document>& sequence_items(const Document& sequence, std::string_view key) {
  const Document& list = required(sequence, key);
  if (list.kind != Document::Kind::kList) refuse_field(list, "a list");
  return list.items;
}

}  // namespace yoke::text
