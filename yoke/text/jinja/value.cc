#include "yoke/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

int depth_over(int deepest) {
  if (deepest >= Value::kMaxDepth) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("lists and maps are nested more than {} deep, or hold a namespace", Value::kMaxDepth));
  }
  return deepest + 1;
}

Value number_from(const std::string& text) {
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  if (const auto [rest, failure] = std::from_chars(text.data(), end, whole); failure == std::errc{} && rest == end) {
    return Value::integer(whole);
  }
  double real = 0;
  std::from_chars(text.data(), end, real);
  return Value::real(real);
}

bool equal_lists(const List& a, const List& b, Budget& budget) {
  return a.kind == b.kind && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                                        [&](const Value& x, const Value& y) { return equal(x, y, budget); });
}

bool equal_maps(const Map& a, const Map& b, Budget& budget) {
  return a.entries.size() == b.entries.size() &&
         std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
           budget.spend(b.entries.size() / 8);
           const Value* other = b.find(entry.first);
           return other && equal(entry.second, *other, budget);
         });
}

// Of comparing two texts.
std::uint64_t steps_of(const MarkedText& a, const MarkedText& b) { return std::min(a.size(), b.size()) / 16; }

}  // namespace

const Value* Map::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.as_text() && name.as_text()->text() == key) return &value;
  }
  return nullptr;
}

const Value* Map::find(const Value& key) const {
  if (key.as_text()) return find(key.as_text()->text());
  for (const auto& [name, value] : entries) {
    const bool same =
        key.is_number() ? name.is_number() && name.number() == key.number() : key.is_none() && name.is_none();
    if (same) return &value;
  }
  return nullptr;
}

Value Value::text(MarkedText value) { return Value(std::make_shared<const MarkedText>(std::move(value))); }

Value Value::list(std::vector<Value> items, ListKind kind) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return Value(std::make_shared<const List>(List{std::move(items), depth_over(deepest), kind}));
}

Value Value::map(std::vector<std::pair<Value, Value>> entries) {
  int deepest = 0;
  for (const auto& [key, value] : entries) deepest = std::max(deepest, value.depth());
  return Value(std::make_shared<const Map>(Map{std::move(entries), depth_over(deepest)}));
}

Value Value::name_space(Namespace entries) { return Value(std::make_shared<Namespace>(std::move(entries))); }
Value Value::function(Function function) { return Value(std::make_shared<const Function>(std::move(function))); }

Value Value::from_document(const Document& document, Origin origin) {
  switch (document.kind) {
    case Document::Kind::kNull:
      return none();
    case Document::Kind::kBool:
      return boolean(document.text == "true");
    case Document::Kind::kNumber:
      return number_from(document.text);
    case Document::Kind::kText:
    case Document::Kind::kPlain:
      return text(replace_invalid_utf8(document.text), origin);
    case Document::Kind::kList: {
      std::vector<Value> items;
      for (const Document& item : document.items) items.push_back(from_document(item, origin));
      return list(std::move(items));
    }
    case Document::Kind::kMap: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, value] : document.fields) {
        entries.emplace_back(text(replace_invalid_utf8(key), origin), from_document(value, origin));
      }
      return map(std::move(entries));
    }
  }
  return none();
}

double Value::number() const {
  if (const bool* flag = as_bool()) return *flag ? 1 : 0;
  if (const std::int64_t* whole = as_integer()) return static_cast<double>(*whole);
  return *as_real();
}

bool Value::truth() const {
  if (is_number()) return number() != 0;
  if (const MarkedText* text = as_text()) return text->size() != 0;
  if (const List* list = as_list()) return !list->items.empty();
  if (const Map* map = as_map()) return !map->entries.empty();
  return !is_undefined() && !is_none();
}

int Value::depth() const {
  if (const List* list = as_list()) return list->depth;
  if (const Map* map = as_map()) return map->depth;
  // A namespace inside a list could come to hold that list; a method holds its receiver.
  if (as_namespace()) return kMaxDepth;
  if (const Function* function = as_function()) return function->receiver ? function->receiver->depth() : 0;
  return 0;
}

std::string_view Value::kind() const {
  constexpr std::string_view kNames[] = {"undefined", "none",   "a bool", "an integer",  "a float",
                                         "a text",    "a list", "a map",  "a namespace", "a function"};
  return kNames[data_.index()];
}

std::string Value::undefined_name() const {
  const Undefined* undefined = as<Undefined>();
  return undefined ? undefined->name : std::string();
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (const auto* x = a.as_integer(), *y = b.as_integer(); x && y) return *x == *y;
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (const auto* x = a.as_text(), *y = b.as_text(); x && y) {
    budget.spend(steps_of(*x, *y));
    return x->text() == y->text();
  }
  if (const auto* x = a.as_list(), *y = b.as_list(); x && y) return equal_lists(*x, *y, budget);
  if (const auto* x = a.as_map(), *y = b.as_map(); x && y) return equal_maps(*x, *y, budget);
  if (a.as_namespace() || a.as_function()) {
    return a.as_namespace() == b.as_namespace() && a.as_function() == b.as_function();
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

int compare(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  if (const auto* x = a.as_integer(), *y = b.as_integer(); x && y) return *x < *y ? -1 : *x > *y;
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  if (const auto* x = a.as_text(), *y = b.as_text(); x && y) {
    budget.spend(steps_of(*x, *y));
    return x->text().compare(y->text());
  }
  if (const auto* x = a.as_list(), *y = b.as_list(); x && y && x->kind == y->kind) {
    for (std::size_t i = 0; i < x->items.size() && i < y->items.size(); ++i) {
      if (!equal(x->items[i], y->items[i], budget)) return compare(x->items[i], y->items[i], budget);
    }
    return x->items.size() < y->items.size() ? -1 : x->items.size() > y->items.size();
  }
  throw Error(ErrorCode::kInvalid, fmt::format("{} and {} have no order", a.kind(), b.kind()));
}

}  // namespace yoke::text::jinja
