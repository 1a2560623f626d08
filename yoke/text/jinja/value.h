// The values of a template: those of JSON, with integers apart from floats, and what Jinja adds (undefined, namespaces,
// functions). Lists and maps are immutable and shared, so that copies are cheap and there are no cycles; their depth is
// bounded, so that walking them needs a bounded stack. Only a Namespace can change, and it cannot be put into others.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/text/jinja/budget.h"
#include "yoke/text/jinja/marked_text.h"

namespace yoke::text::jinja {

class Value;
struct Macro;

struct Undefined {
  std::string name;  // what was asked for, for the message when it is used
};
struct None {};
enum class ListKind { kList, kTuple };
struct List {
  std::vector<Value> items;
  int depth = 1;
  ListKind kind = ListKind::kList;
};
struct Map {
  std::vector<std::pair<Value, Value>> entries;  // in the order written; keys are texts, numbers or none
  int depth = 1;
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;  // as in Python 1, 1.0 and True are one key
};
struct Namespace {
  std::vector<std::pair<std::string, Value>> entries;
};
struct Scope;
struct Function {
  std::string name;
  std::shared_ptr<const Value> receiver = {};  // of a method such as message.content.strip
  const Macro* macro = nullptr;                // else a function of the language
  // What the body of a {% call %} sees: it is there while the call lasts. A macro sees the template's own names.
  std::optional<std::weak_ptr<Scope*>> scope = {};
};

class Value {
 public:
  static constexpr int kMaxDepth = 80;  // parsed JSON is at most 64 deep

  Value() : data_(Undefined{}) {}
  static Value undefined(std::string name) { return Value(Undefined{std::move(name)}); }
  static Value none() { return Value(None{}); }
  static Value boolean(bool value) { return Value(value); }
  static Value integer(std::int64_t value) { return Value(value); }
  static Value real(double value) { return Value(value); }
  static Value text(MarkedText value);
  static Value text(std::string value, Origin origin) { return text(MarkedText(std::move(value), origin)); }
  // kInvalid where they are too deep, or hold a namespace.
  static Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  static Value map(std::vector<std::pair<Value, Value>> entries);
  static Value name_space(Namespace entries);
  static Value function(Function function);
  // All texts and keys in it are marked with the origin, and what is not UTF-8 in them is replaced.
  static Value from_document(const Document& document, Origin origin);

  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }
  const bool* as_bool() const { return as<bool>(); }
  const std::int64_t* as_integer() const { return as<std::int64_t>(); }
  const double* as_real() const { return as<double>(); }
  const MarkedText* as_text() const { return as_shared<const MarkedText>(); }
  const List* as_list() const { return as_shared<const List>(); }
  const Map* as_map() const { return as_shared<const Map>(); }
  Namespace* as_namespace() const { return as_shared<Namespace>(); }
  const Function* as_function() const { return as_shared<const Function>(); }
  bool is_number() const { return as_bool() || as_integer() || as_real(); }
  double number() const;  // of a bool too, as in Python

  bool truth() const;
  int depth() const;
  std::string_view kind() const;  // "a text", for messages
  std::string undefined_name() const;

 private:
  template <class T>
  explicit Value(T data) : data_(std::move(data)) {}
  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  T* as_shared() const {
    const auto* shared = std::get_if<std::shared_ptr<T>>(&data_);
    return shared ? shared->get() : nullptr;
  }

  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const MarkedText>,
               std::shared_ptr<const List>, std::shared_ptr<const Map>, std::shared_ptr<Namespace>,
               std::shared_ptr<const Function>>
      data_;
};

// These walk all of a value, at the cost of the budget.
bool equal(const Value& a, const Value& b, Budget& budget);
// Negative, zero or positive. kInvalid where the two have no order.
int compare(const Value& a, const Value& b, Budget& budget);

// As Python prints it: texts as they are, True, None, ['a', 1], (1,).
MarkedText print(const Value& value, Budget& budget);
struct JsonStyle {
  int indent = -1;  // 0 or more: one line for each value
  bool only_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> between_items = {};  // else ", ", or "," at the end of a line
  std::string between_key_and_value = ": ";
};
// As Python's json.dumps. Marked with the weakest origin.
MarkedText to_json(const Value& value, JsonStyle style, Budget& budget);

}  // namespace yoke::text::jinja
