// Whether a JSON value satisfies a schema of OpenAI's API (tests/golden/openai/schemas.json): the keywords that these
// schemas use.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "tests/program.h"
#include "yoke/base/document.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"

namespace yoke::tests {

class ApiSchemas {
 public:
  ApiSchemas() : all_(parse_json(read_file(kSourceFolder / "tests/golden/openai/schemas.json"), "schemas")) {}

  // What is wrong with it; nothing where it satisfies the schema of that name.
  std::optional<std::string> problem(const std::string& name, const Document& value) const {
    return check(named(name), value, name);
  }

 private:
  using Kind = Document::Kind;

  const Document& named(const std::string& name) const {
    const Document* found = all_.find("components")->find("schemas")->find(name);
    if (!found) throw Error(ErrorCode::kNotFound, "there is no schema " + name);
    return *found;
  }

  static bool is_type(const std::string& type, const Document& value) {
    if (type == "null") return value.kind == Kind::kNull;
    if (type == "object") return value.kind == Kind::kMap;
    if (type == "array") return value.kind == Kind::kList;
    if (type == "string") return value.kind == Kind::kText;
    if (type == "boolean") return value.kind == Kind::kBool;
    if (type == "integer") {
      return value.kind == Kind::kNumber && value.text.find_first_of(".eE") == std::string::npos;
    }
    return type == "number" && value.kind == Kind::kNumber;
  }

  std::optional<std::string> check(const Document& schema, const Document& value, const std::string& where) const {
    if (const auto* nullable = schema.find("nullable"); nullable && value.kind == Kind::kNull) return std::nullopt;
    if (const auto* reference = schema.find("$ref")) {
      return check(named(reference->text.substr(reference->text.rfind('/') + 1)), value, where);
    }
    if (const auto* type = schema.find("type"); type && type->kind == Kind::kText && !is_type(type->text, value)) {
      return fmt::format("{}: no {}", where, type->text);
    }
    if (const auto* names = schema.find("enum")) {
      const bool is_one = std::any_of(names->items.begin(), names->items.end(),
                                      [&](const Document& one) { return one.text == value.text; });
      if (!is_one) return fmt::format("{}: '{}' is none of the names", where, value.text);
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      if (const auto* choices = schema.find(key)) {
        const bool fits = std::any_of(choices->items.begin(), choices->items.end(),
                                      [&](const Document& one) { return !check(one, value, where); });
        if (!fits) return fmt::format("{}: fits none of {}", where, key);
      }
    }
    if (const auto* all = schema.find("allOf")) {
      for (const Document& one : all->items) {
        if (auto wrong = check(one, value, where)) return wrong;
      }
    }
    return value.kind == Kind::kMap ? check_map(schema, value, where) : check_items(schema, value, where);
  }

  std::optional<std::string> check_items(const Document& schema, const Document& value,
                                         const std::string& where) const {
    const auto* items = schema.find("items");
    if (!items || value.kind != Kind::kList) return std::nullopt;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (auto wrong = check(*items, value.items[i], fmt::format("{}[{}]", where, i))) return wrong;
    }
    return std::nullopt;
  }

  std::optional<std::string> check_map(const Document& schema, const Document& value, const std::string& where) const {
    if (const auto* required = schema.find("required")) {
      for (const Document& key : required->items) {
        if (!value.find(key.text)) return fmt::format("{}: no '{}'", where, key.text);
      }
    }
    const auto* properties = schema.find("properties");
    const auto* others = schema.find("additionalProperties");
    for (const auto& [key, field] : value.fields) {
      const Document* own = properties ? properties->find(key) : nullptr;
      if (!own && others && others->kind == Kind::kMap) own = others;
      if (!own) continue;
      if (auto wrong = check(*own, field, where + "." + key)) return wrong;
    }
    return std::nullopt;
  }

  Document all_;
};

}  // namespace yoke::tests
