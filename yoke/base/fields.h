// Structs to Document and back, from one description of their fields. For .cc files only; headers declare plain
// functions. A struct S takes part by a template in its namespace:
//
//   template <class Visitor>
//   void visit_fields(Visitor& visit, ClusterNode& node) {
//     visit.required("name", node.name);
//     visit.optional("user", node.user);   // absent keeps the default; std::nullopt and empty lists are not written
//     visit.renamed("halves", "rails");    // the hint of the error about the old key names the new one
//   }
//
// an enum by `constexpr auto enum_names(Topology)` that returns an array of (name, value) pairs, and any other type by
// functions of its own. A type that other files nest or read declares these two beside it, and they come before any
// description:
//
//   Document to_json(const ClusterNode& node);                       // { return write_fields(node); }
//   void from_json(const Document& document, ClusterNode& node);     // { read_fields(document, node); }
//
// Everyone reads by `from_json<T>(document)` (document.h); `to_document(value)` writes a value of any of these types.
// Unknown keys are errors that suggest the nearest key. Rejected: nlohmann's macros (no place in errors, unknown keys
// pass, and the library's header in each of our headers).
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/base/units.h"

namespace yoke {

template <class T>
T from_document(const Document& document) {
  T value{};
  from_json(document, value);
  return value;
}

template <class T>
Document to_document(const T& value) {
  Document document;
  write_field(document, value);
  return document;
}

// ---- reading

[[noreturn]] inline void refuse_field(const Document& document, std::string_view wanted, std::string hint = {}) {
  const bool scalar = document.kind != Document::Kind::kList && document.kind != Document::Kind::kMap;
  const std::string got = scalar && document.kind != Document::Kind::kNull
                              ? fmt::format("'{}'", printable(document.text, 60))
                              : std::string(to_string(document.kind));
  throw Error(ErrorCode::kInvalid, fmt::format("{}: this must be {}, not {}", document.where, wanted, got),
              std::move(hint));
}

inline bool is_text(const Document& document) {
  return document.kind == Document::Kind::kText || document.kind == Document::Kind::kPlain;
}

inline void from_json(const Document& document, Document& value) { value = document; }

inline void from_json(const Document& document, std::string& value) {
  if (!is_text(document)) refuse_field(document, "a text");
  value = document.text;
}

inline void from_json(const Document& document, std::filesystem::path& value) {
  value = from_json<std::string>(document);
}

inline void from_json(const Document& document, bool& value) {
  const bool typed = document.kind == Document::Kind::kBool || document.kind == Document::Kind::kPlain;
  if (!typed || (document.text != "true" && document.text != "false")) refuse_field(document, "true or false");
  value = document.text == "true";
}

template <class Number>
requires(std::integral<Number> || std::floating_point<Number>) void from_json(const Document& document, Number& value) {
  const bool typed = document.kind == Document::Kind::kNumber || document.kind == Document::Kind::kPlain;
  std::string_view text = document.text;
  // JSON does not tell 2 from 2.0; who writes YAML for us means what is written.
  if (std::integral<Number> && document.kind == Document::Kind::kNumber && text.ends_with(".0")) text.remove_suffix(2);
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  const bool finite = value - value == 0;  // from_chars takes "inf" and "nan"
  if (!typed || failure != std::errc{} || rest != end || !finite) {
    refuse_field(document, std::integral<Number> ? "a whole number" : "a number");
  }
}

// Quantities: a number and a unit in YAML ("2Gb/s"), a plain number in the base unit in JSON.
template <class Tag, class Representation, class Parse>
void read_quantity(const Document& document, Quantity<Tag, Representation>& value, Parse parse,
                   std::string_view wanted) {
  if (document.kind == Document::Kind::kNumber) return from_json(document, value.value);
  if (!is_text(document)) refuse_field(document, wanted);
  const auto parsed = parse(document.text);
  if (!parsed) refuse_field(document, wanted, parsed.error().hint());
  value = *parsed;
}
inline void from_json(const Document& document, Bytes& value) { read_quantity(document, value, parse_bytes, "a size"); }
inline void from_json(const Document& document, BitsPerSecond& value) {
  read_quantity(document, value, parse_bits_per_second, "a rate in bits per second");
}
inline void from_json(const Document& document, BytesPerSecond& value) {
  read_quantity(document, value, parse_bytes_per_second, "a rate in bytes per second");
}
inline void from_json(const Document& document, Seconds& value) {
  read_quantity(document, value, parse_seconds, "a time");
}

template <class Enum>
requires std::is_enum_v<Enum>
void from_json(const Document& document, Enum& value) {
  std::vector<std::string> names;
  for (const auto& [name, candidate] : enum_names(Enum{})) {
    if (is_text(document) && document.text == name) {
      value = candidate;
      return;
    }
    names.emplace_back(name);
  }
  const auto meant = nearest(document.text, names);
  refuse_field(document, fmt::format("one of {}", fmt::join(names, ", ")),
               meant ? fmt::format("did you mean '{}'?", *meant) : "");
}

template <class T>
void from_json(const Document& document, std::optional<T>& value) {
  if (document.kind == Document::Kind::kNull) {
    value.reset();
  } else {
    value = from_json<T>(document);
  }
}

template <class T>
void from_json(const Document& document, std::vector<T>& values) {
  if (document.kind != Document::Kind::kList) refuse_field(document, "a list");
  values.clear();
  for (const Document& item : document.items) values.push_back(from_json<T>(item));
}

// Collects the keys only, so that an unknown key is reported before a missing one: a typo is usually both.
struct FieldNames {
  template <class T>
  void required(std::string_view key, T&) {
    names.emplace_back(key);
  }
  template <class T>
  void optional(std::string_view key, T&) {
    names.emplace_back(key);
  }
  void renamed(std::string_view old, std::string_view now) { renamed_keys.emplace_back(old, now); }
  std::vector<std::string> names;
  std::vector<std::pair<std::string_view, std::string_view>> renamed_keys;  // old, new
};

struct FieldReader {
  template <class T>
  void required(std::string_view key, T& value) {
    const Document* field = map.find(key);
    if (!field) throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", map.where, key));
    from_json(*field, value);
  }
  template <class T>
  void optional(std::string_view key, T& value) {
    if (const Document* field = map.find(key)) from_json(*field, value);
  }
  void renamed(std::string_view, std::string_view) {}
  const Document& map;
};

template <class T>
concept HasFields = requires(FieldNames& names, T& value) {
  visit_fields(names, value);
};

// A struct by its description, for the struct's own from_json.
template <HasFields T>
void read_fields(const Document& document, T& value) {
  if (document.kind != Document::Kind::kMap) refuse_field(document, "a map of keys");
  FieldNames known;
  visit_fields(known, value);
  for (const auto& [key, field] : document.fields) {
    if (std::find(known.names.begin(), known.names.end(), key) != known.names.end()) continue;
    std::string hint = suggest(key, known.names, "keys");
    for (const auto& [old, now] : known.renamed_keys) {
      if (key == old) hint = fmt::format("this key is called '{}' now", now);
    }
    throw Error(ErrorCode::kInvalid, fmt::format("{}: unknown key '{}'", field.where, printable(key, 60)),
                std::move(hint));
  }
  FieldReader reader{document};
  visit_fields(reader, value);
}

template <HasFields T>
void from_json(const Document& document, T& value) {
  read_fields(document, value);
}

// ---- writing. The Document comes first for argument-dependent look-up also of types outside this namespace.

inline void write_field(Document& document, const Document& value) { document = value; }
inline void write_field(Document& document, const std::string& value) { document = Document::string(value); }
inline void write_field(Document& document, const std::filesystem::path& value) {
  document = Document::string(value.native());
}
inline void write_field(Document& document, bool value) { document = Document::boolean(value); }
inline void write_field(Document& document, std::integral auto value) {
  document = Document::number(static_cast<std::int64_t>(value));
}
inline void write_field(Document& document, double value) { document = Document::number(value); }

template <class Tag, class Representation>
void write_field(Document& document, Quantity<Tag, Representation> value) {
  document = Document::number(value.value);
  document.with_unit = exact(value);
}

template <class Enum>
requires std::is_enum_v<Enum>
void write_field(Document& document, Enum value) {
  for (const auto& [name, candidate] : enum_names(Enum{})) {
    if (candidate == value) document = Document::string(std::string(name));
  }
}

template <class T>
void write_field(Document& document, const std::optional<T>& value) {
  if (value) write_field(document, *value);
}

template <class T>
void write_field(Document& document, const std::vector<T>& values) {
  document = Document::list();
  for (const T& value : values) document.items.push_back(to_document(value));
}

struct FieldWriter {
  template <class T>
  void required(std::string_view key, T& value) {
    map.add(std::string(key), to_document(value));
  }
  template <class T>
  void optional(std::string_view key, T& value) {
    Document written = to_document(value);
    const bool is_empty_list = written.kind == Document::Kind::kList && written.items.empty();
    if (written.kind != Document::Kind::kNull && !is_empty_list) map.add(std::string(key), std::move(written));
  }
  void renamed(std::string_view, std::string_view) {}
  Document map = Document::map();
};

// As read_fields, for a struct's own to_json.
template <HasFields T>
Document write_fields(const T& value) {
  FieldWriter writer;
  visit_fields(writer, const_cast<T&>(value));  // one description serves both ways; the writer only reads
  return std::move(writer.map);
}

template <class T>
concept HasToJson = requires(const T& value) {
  { to_json(value) } -> std::same_as<Document>;
};

template <class T>
requires(HasToJson<T> || HasFields<T>) void write_field(Document& document, const T& value) {
  if constexpr (HasToJson<T>) {
    document = to_json(value);
  } else {
    document = write_fields(value);
  }
}

}  // namespace yoke
