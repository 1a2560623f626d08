// A value as it stands in a JSON or YAML text, before it has a type, with the place it came from: the one form between
// text (json.h, yaml.h) and our structs (fields.h). So errors can name the line of a cluster file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/base/place.h"

namespace yoke {

struct Document {
  enum class Kind {
    kNull,
    kBool,    // text is "true" or "false"
    kNumber,  // text is a JSON number
    kText,    // a string, quoted where it was read
    kPlain,   // a YAML scalar without quotes: what it is, the field that reads it decides
    kList,
    kMap,
  };
  using Field = std::pair<std::string, Document>;

  Kind kind = Kind::kNull;
  std::string text;
  std::vector<Document> items;  // of a list
  std::vector<Field> fields;    // of a map, in the order written; keys are unique
  std::string with_unit;        // of a number that is a quantity: how a file for people says it ("2Gb/s")
  TextPlace where;              // "cluster.yaml:4" or "plan.json: nodes[1].name"; empty when made by the program

  static Document null() { return {}; }
  static Document boolean(bool value);
  static Document number(std::int64_t value);
  static Document number(double value);  // null where JSON has no number for it (infinity, NaN)
  static Document string(std::string value);
  static Document list(std::vector<Document> items = {});
  static Document map(std::vector<Field> fields = {});

  const Document* find(std::string_view key) const;  // null pointer when absent or no map
  void add(std::string key, Document value) { fields.emplace_back(std::move(key), std::move(value)); }

  // Same value; how and where it stands does not count.
  friend bool operator==(const Document& a, const Document& b) {
    return a.kind == b.kind && a.text == b.text && a.items == b.items && a.fields == b.fields;
  }
};

std::string_view to_string(Document::Kind kind);  // "a list", for messages

// A value of a type that declares `void from_json(const Document&, T&)`, or of any type that fields.h knows.
template <class T>
T from_json(const Document& document) {
  T value{};
  from_json(document, value);
  return value;
}

}  // namespace yoke
