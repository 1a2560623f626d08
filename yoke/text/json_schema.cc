#include "yoke/text/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/text.h"
#include "yoke/text/json_pieces.h"

namespace yoke::text {
namespace {

using At = GrammarBuilder::At;
using Kind = Document::Kind;

constexpr int kMaxSchemaDepth = 100;
constexpr std::int64_t kMaxSchemaCount = 10'000;  // of characters and items that are counted

constexpr std::string_view kAnnotations[] = {"title", "description", "default",    "examples", "$schema",
                                             "$id",   "$comment",    "deprecated", "readOnly", "writeOnly",
                                             "$defs", "definitions", "$anchor",    "strict",   "nullable"};
constexpr std::string_view kKeywords[] = {"type",
                                          "enum",
                                          "const",
                                          "anyOf",
                                          "oneOf",
                                          "allOf",
                                          "$ref",
                                          "properties",
                                          "required",
                                          "items",
                                          "minItems",
                                          "maxItems",
                                          "minLength",
                                          "pattern",
                                          "format",
                                          "minimum",
                                          "exclusiveMinimum",
                                          "maximum",
                                          "exclusiveMaximum",
                                          "maxLength",
                                          "additionalProperties",
                                          "prefixItems"};

// Formats that are worth holding a model to; the others say what a string means.
constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date", R"(^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$)"},
    {"time", R"(^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$)"},
    {"date-time", R"(^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
                  R"((\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$)"},
    {"uuid", R"(^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$)"},
    {"ipv4", R"(^(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}$)"},
    {"email", R"(^[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){1,4}$)"},
};

[[noreturn]] void refuse_schema(const std::string& why) {
  throw Error(ErrorCode::kInvalid, fmt::format("the JSON schema {}", why));
}
[[noreturn]] void lack_schema(const std::string& why) {
  throw Error(ErrorCode::kUnsupported, fmt::format("the JSON schema {}", why));
}

std::optional<std::int64_t> whole_number(const Document& value) {
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [rest, failure] = std::from_chars(value.text.data(), end, number);
  if (value.kind != Kind::kNumber || failure != std::errc{} || rest != end) return std::nullopt;
  if (number != std::floor(number) || std::abs(number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

class SchemaReader {
 public:
  SchemaReader(GrammarBuilder& builder, const Document& root) : builder_(builder), pieces_(builder), root_(root) {}

  At read(At from, const Document& schema, int depth = 0) {
    if (depth > kMaxSchemaDepth) refuse_schema("is nested too deep");
    if (schema.kind == Kind::kBool && schema.text == "true") return pieces_.any_value(from);
    if (schema.kind != Kind::kMap) refuse_schema("has a part that is neither an object nor true");
    check_keywords(schema);
    if (const auto* reference = schema.find("$ref")) return referred(from, *reference, depth);
    if (const auto* value = schema.find("const")) return literal(from, *value);
    if (const auto* values = schema.find("enum")) return one_of(from, *values);
    if (const auto* all = schema.find("allOf")) return read(from, merged(schema, *all), depth + 1);
    for (const char* key : {"anyOf", "oneOf"}) {
      if (const auto* choices = schema.find(key)) return one_schema_of(from, schema, key, *choices, depth);
    }
    return read_types(from, schema, depth);
  }

 private:
  static void check_keywords(const Document& schema) {
    for (const auto& [key, value] : schema.fields) {
      const auto is_key = [&name = key](std::string_view one) { return one == name; };
      if (std::any_of(std::begin(kKeywords), std::end(kKeywords), is_key)) continue;
      if (std::any_of(std::begin(kAnnotations), std::end(kAnnotations), is_key)) continue;
      lack_schema(fmt::format("has the keyword '{}', which is not supported", printable(key, 60)));
    }
  }

  At literal(At from, const Document& value) { return builder_.literal(from, print_json(value, JsonLayout::kOneLine)); }

  At one_of(At from, const Document& values) {
    if (values.kind != Kind::kList || values.items.empty()) refuse_schema("has an enum without values");
    const At end = builder_.node();
    for (const Document& value : values.items) builder_.join(literal(from, value), end);
    return end;
  }

  // Each choice with what stands beside them.
  At one_schema_of(At from, const Document& schema, std::string_view key, const Document& choices, int depth) {
    if (choices.kind != Kind::kList || choices.items.empty()) refuse_schema("has a choice of nothing");
    Document beside = schema;
    std::erase_if(beside.fields, [&](const auto& field) {
      return field.first == key ||
             std::find(std::begin(kAnnotations), std::end(kAnnotations), field.first) != std::end(kAnnotations);
    });
    const At end = builder_.node();
    for (const Document& choice : choices.items) {
      const Document whole = beside.fields.empty() ? choice : merged(beside, Document::list({choice}));
      builder_.join(read(from, whole, depth + 1), end);
    }
    return end;
  }

  // Several schemas at once: of objects the properties are put together, any other keyword must stand once.
  Document merged(const Document& schema, const Document& parts) {
    if (parts.kind != Kind::kList) refuse_schema("has an allOf that is no list");
    Document all = schema;
    std::erase_if(all.fields, [](const auto& field) { return field.first == "allOf"; });
    for (const Document& item : parts.items) {
      const auto* reference = item.find("$ref");
      const Document& part = reference ? target(*reference) : item;
      if (part.kind != Kind::kMap) refuse_schema("has an allOf of what is no schema");
      for (const auto& [key, value] : part.fields) add_merged(all, key, value);
    }
    return all;
  }
  static void add_merged(Document& all, const std::string& key, const Document& value) {
    const auto found =
        std::find_if(all.fields.begin(), all.fields.end(), [&](const auto& field) { return field.first == key; });
    if (found == all.fields.end()) return all.add(key, value);
    Document& own = found->second;
    if (std::find(std::begin(kAnnotations), std::end(kAnnotations), key) != std::end(kAnnotations) || own == value)
      return;
    if (key == "properties") {
      for (const auto& [name, property] : value.fields) {
        if (!own.find(name)) own.add(name, property);
      }
    } else if (key == "required") {
      own.items.insert(own.items.end(), value.items.begin(), value.items.end());
    } else if (key == "additionalProperties") {
      if (value.text == "false") own = value;
    } else {
      lack_schema(fmt::format("has several schemas with the keyword '{}' for one value", printable(key, 60)));
    }
  }

  // ---- references

  const Document& target(const Document& reference) const {
    const std::string& name = reference.text;
    if (reference.kind != Kind::kText || !name.starts_with('#')) {
      lack_schema(fmt::format("refers to '{}', which is not in the schema itself", printable(name, 100)));
    }
    const Document* at = &root_;
    for (const std::string& part : split(name.substr(1), '/')) {
      if (part.empty()) continue;
      at = at->kind == Kind::kMap ? at->find(part) : nullptr;
      if (!at) refuse_schema(fmt::format("refers to '{}', which is not there", printable(name, 100)));
    }
    return *at;
  }
  At referred(At from, const Document& reference, int depth) {
    const Document& schema = target(reference);
    const auto [known, is_new] = rules_.emplace(reference.text, 0);
    if (is_new) {
      const std::int32_t rule = known->second = builder_.reserve_rule();
      builder_.end_rule(read(builder_.begin(rule), schema, depth + 1));
      return builder_.call(from, rule);
    }
    return builder_.call(from, known->second);
  }

  // ---- by type

  static std::vector<std::string> types_of(const Document& schema) {
    const auto* given = schema.find("type");
    std::vector<std::string> types;
    if (given && given->kind == Kind::kText) types.push_back(given->text);
    if (given && given->kind == Kind::kList) {
      for (const Document& one : given->items) types.push_back(one.text);
    }
    if (given && types.empty()) refuse_schema("has a type that is none");
    if (const auto* nullable = schema.find("nullable"); nullable && nullable->text == "true") types.push_back("null");
    if (given) return types;
    const auto has = [&](const char* key) { return schema.find(key) != nullptr; };
    if (has("properties") || has("required") || has("additionalProperties")) types.push_back("object");
    if (has("items") || has("prefixItems") || has("minItems") || has("maxItems")) types.push_back("array");
    if (has("minLength") || has("maxLength") || has("pattern") || has("format")) types.push_back("string");
    if (has("minimum") || has("maximum") || has("exclusiveMinimum") || has("exclusiveMaximum")) {
      types.push_back("number");
    }
    return types;
  }

  At read_types(At from, const Document& schema, int depth) {
    const std::vector<std::string> types = types_of(schema);
    if (types.empty()) return pieces_.any_value(from);
    const At end = builder_.node();
    for (const std::string& type : types) builder_.join(read_type(from, type, schema, depth), end);
    return end;
  }

  At read_type(At from, const std::string& type, const Document& schema, int depth) {
    if (type == "object") return object(from, schema, depth);
    if (type == "array") return array(from, schema, depth);
    if (type == "string") return string(from, schema);
    if (type == "integer" || type == "number") return number(from, schema, type == "integer");
    if (type == "null") return builder_.literal(from, "null");
    if (type != "boolean")
      refuse_schema(fmt::format("has the type '{}', which JSON does not have", printable(type, 40)));
    const At end = builder_.node();
    builder_.join(builder_.literal(from, "true"), end);
    builder_.join(builder_.literal(from, "false"), end);
    return end;
  }

  static std::int64_t count(const Document& schema, const char* key, std::int64_t otherwise) {
    const auto* given = schema.find(key);
    if (!given) return otherwise;
    const auto number = whole_number(*given);
    if (!number || *number < 0) refuse_schema(fmt::format("has a {} that is no count", key));
    if (*number > kMaxSchemaCount) lack_schema(fmt::format("has a {} above {}", key, kMaxSchemaCount));
    return *number;
  }

  At string(At from, const Document& schema) {
    const std::int64_t least = count(schema, "minLength", 0), most = count(schema, "maxLength", -1);
    if (most >= 0 && most < least) refuse_schema("has a maxLength below its minLength");
    const auto* pattern = schema.find("pattern");
    const bool counts = least > 0 || most >= 0;
    if (pattern && counts) lack_schema("has a pattern and a length for one string");
    if (pattern) return pieces_.matching(from, pattern->text);
    const auto* format = schema.find("format");
    for (const auto& [name, expression] : kFormats) {
      if (format && !counts && format->text == name) return pieces_.matching(from, expression);
    }
    return pieces_.string(from, least, most);
  }

  At number(At from, const Document& schema, bool is_integer) {
    std::optional<std::int64_t> low, high;
    const auto bound = [&](const char* key, std::int64_t inwards, std::optional<std::int64_t>& target, bool is_low) {
      const auto* given = schema.find(key);
      if (!given) return;
      auto value = whole_number(*given);
      if (!value) lack_schema(fmt::format("has a {} that is no whole number", key));
      if (inwards != 0 && !is_integer) lack_schema(fmt::format("has {} for numbers that need not be whole", key));
      *value += inwards;
      if (!target || (is_low ? *value > *target : *value < *target)) target = value;
    };
    bound("minimum", 0, low, true);
    bound("exclusiveMinimum", 1, low, true);
    bound("maximum", 0, high, false);
    bound("exclusiveMaximum", -1, high, false);
    if (low && high && *low > *high) refuse_schema("has bounds that no number keeps");
    if (is_integer) return pieces_.integer(from, low, high);
    return low || high ? pieces_.number(from, low, high) : pieces_.number(from);
  }

  At array(At from, const Document& schema, int depth) {
    const std::int64_t least = count(schema, "minItems", 0), most = count(schema, "maxItems", -1);
    if (most >= 0 && most < least) refuse_schema("has maxItems below its minItems");
    const auto* items = schema.find("items");
    const auto* first_items = schema.find("prefixItems");
    const bool is_closed = items && items->kind == Kind::kBool && items->text == "false";
    const std::vector<Document> firsts = first_items ? first_items->items : std::vector<Document>();
    const auto fixed = static_cast<std::int64_t>(firsts.size());
    const auto rest = item_rule(items, depth);
    const At close = builder_.node();
    At at = pieces_.space(builder_.literal(from, "["));
    const std::int64_t counted = std::max(least, most);
    for (std::int64_t i = 0;; ++i) {
      if (i >= least) builder_.join(at, close);
      if ((most >= 0 && i == most) || (is_closed && i >= fixed)) break;
      const bool is_loop = i >= fixed && i >= counted && i > 0;
      At item = at;
      if (is_loop) {  // any number of further ones
        item = builder_.node();
        builder_.join(at, item);
        builder_.join(item, close);
      }
      const At begin = i > 0 ? pieces_.space(builder_.literal(item, ",")) : item;
      At next = i < fixed ? read(begin, firsts[static_cast<std::size_t>(i)], depth + 1) : builder_.call(begin, rest);
      next = pieces_.space(next);
      if (is_loop) {
        builder_.join(next, item);
        break;
      }
      at = next;
    }
    return builder_.literal(close, "]");
  }
  std::int32_t item_rule(const Document* items, int depth) {
    const std::int32_t rule = builder_.reserve_rule();
    const bool is_schema = items && (items->kind == Kind::kMap || items->text == "true");
    builder_.end_rule(is_schema ? read(builder_.begin(rule), *items, depth + 1)
                                : pieces_.any_value(builder_.begin(rule)));
    return rule;
  }

  // Two nodes for each place between properties: none was written yet, or some were, and a comma comes first.
  At object(At from, const Document& schema, int depth) {
    const auto* properties = schema.find("properties");
    const auto* others = schema.find("additionalProperties");
    const bool is_open = others ? others->text != "false" : !properties || properties->fields.empty();
    if (properties && properties->kind != Kind::kMap) refuse_schema("has properties that are no object");
    Document all = properties ? *properties : Document::map();
    const auto is_required = required_names(schema, all);
    At none = pieces_.space(builder_.literal(from, "{")), some = builder_.node();
    for (const auto& [name, property] : all.fields) {
      const At next_none = builder_.node(), next_some = builder_.node();
      const At begin = builder_.node();
      builder_.join(none, begin);
      builder_.join(pieces_.space(builder_.literal(some, ",")), begin);
      At at = literal(begin, Document::string(name));
      at = pieces_.space(builder_.literal(pieces_.space(at), ":"));
      builder_.join(pieces_.space(read(at, property, depth + 1)), next_some);
      if (std::find(is_required.begin(), is_required.end(), name) == is_required.end()) {
        builder_.join(none, next_none);
        builder_.join(some, next_some);
      }
      none = next_none;
      some = next_some;
    }
    const At end = builder_.node();
    builder_.join(none, end);
    builder_.join(some, end);
    if (is_open) add_others(none, some, end, others, depth);
    return builder_.literal(end, "}");
  }

  // A required property that no other keyword describes can be anything.
  static std::vector<std::string> required_names(const Document& schema, Document& properties) {
    std::vector<std::string> names;
    const auto* required = schema.find("required");
    if (!required) return names;
    if (required->kind != Kind::kList) refuse_schema("has a 'required' that is no list");
    for (const Document& name : required->items) {
      if (name.kind != Kind::kText) refuse_schema("requires what is no name");
      names.push_back(name.text);
      if (!properties.find(name.text)) properties.add(name.text, Document::boolean(true));
    }
    return names;
  }

  void add_others(At none, At some, At end, const Document* others, int depth) {
    const At begin = builder_.node();
    builder_.join(none, begin);
    builder_.join(pieces_.space(builder_.literal(some, ",")), begin);
    At at = pieces_.space(builder_.literal(pieces_.space(pieces_.string(begin)), ":"));
    at = others && others->kind == Kind::kMap ? read(at, *others, depth + 1) : pieces_.any_value(at);
    at = pieces_.space(at);
    builder_.join(at, end);
    builder_.join(pieces_.space(builder_.literal(at, ",")), begin);
  }

  GrammarBuilder& builder_;
  JsonPieces pieces_;
  const Document& root_;
  std::map<std::string, std::int32_t> rules_;  // by the reference
};

}  // namespace

At add_json_schema(GrammarBuilder& builder, At from, const Document& schema) {
  return SchemaReader(builder, schema).read(from, schema);
}

}  // namespace yoke::text
