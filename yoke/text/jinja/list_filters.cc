// Filters over lists and maps.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "yoke/text/jinja/builtins.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

Value length(Interpreter& interpreter, const Arguments& arguments) {
  const Value& value = arguments.subject;
  if (const Map* map = value.as_map()) return Value::integer(static_cast<std::int64_t>(map->entries.size()));
  if (const List* list = value.as_list()) return Value::integer(static_cast<std::int64_t>(list->items.size()));
  return Value::integer(static_cast<std::int64_t>(interpreter.iterate(value).size()));
}

// function.name or 0.name, as map(attribute='function.name') names it.
Value attribute_path(Interpreter& interpreter, Value value, std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, dot);
    std::int64_t index = 0;
    const bool is_index = std::from_chars(name.data(), name.data() + name.size(), index).ptr == name.data() + dot;
    value =
        interpreter.item(value, is_index ? Value::integer(index) : Value::text(std::string(name), Origin::kTemplate));
    path.remove_prefix(std::min(path.size(), dot + 1));
  }
  return value;
}

Value join(Interpreter& interpreter, const Arguments& arguments) {
  const Value* separator = arguments.find(0, "d");
  const MarkedText between = separator ? print(*separator, interpreter.budget()) : MarkedText();
  const Value* path = arguments.find(1, "attribute");
  MarkedText joined;
  bool first = true;
  for (const Value& item : interpreter.iterate(arguments.subject)) {
    if (!first) joined.append(between);
    first = false;
    const bool by_attribute = path && path->as_text();
    joined.append(
        print(by_attribute ? attribute_path(interpreter, item, path->as_text()->text()) : item, interpreter.budget()));
    interpreter.spend(between.size() / 16);
    interpreter.check_size(joined.size());
  }
  return interpreter.text(std::move(joined));
}

Value items(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.subject.is_undefined()) return interpreter.list({});
  if (!arguments.subject.as_map())
    interpreter.refuse(fmt::format("'items' needs a map, not {}", arguments.subject.kind()));
  return find_map_method("items")(interpreter, {.subject = arguments.subject});
}

Value to_list(Interpreter& interpreter, const Arguments& arguments) {
  return interpreter.list(interpreter.iterate(arguments.subject));
}

Value first(Interpreter& interpreter, const Arguments& arguments) {
  const std::vector<Value> all = interpreter.iterate(arguments.subject);
  return all.empty() ? Value::undefined("the first of nothing") : all.front();
}
Value last(Interpreter& interpreter, const Arguments& arguments) {
  const std::vector<Value> all = interpreter.iterate(arguments.subject);
  return all.empty() ? Value::undefined("the last of nothing") : all.back();
}

Value reverse(Interpreter& interpreter, const Arguments& arguments) {
  return slice(interpreter, arguments.subject, Value::none(), Value::none(), Value::integer(-1));
}

// select, reject, selectattr, rejectattr: by a test of the item or of an attribute of it, or by its truth.
enum class Keep { kMatches, kOthers };
enum class Tested { kItem, kAttribute };
Value select(Interpreter& interpreter, const Arguments& arguments, Keep keep, Tested tested) {
  if (!arguments.subject.truth()) return interpreter.list({});  // none too
  const std::size_t test_at = tested == Tested::kAttribute ? 1 : 0;
  std::vector<Value> kept;
  for (const Value& item : interpreter.iterate(arguments.subject)) {
    Arguments inner{.subject = item};
    if (tested == Tested::kAttribute) {
      inner.subject = attribute_path(interpreter, item, text_argument(interpreter, arguments, 0, "attribute").text());
    }
    bool holds = inner.subject.truth();
    if (arguments.positional.size() > test_at) {
      const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(test_at) + 1;
      inner.positional.assign(rest, arguments.positional.end());
      holds = interpreter.test(text_argument(interpreter, arguments, test_at, "test").text(), inner);
    }
    interpreter.spend(1);
    if (holds == (keep == Keep::kMatches)) kept.push_back(item);
  }
  return interpreter.list(std::move(kept));
}

Value select_items(Interpreter& i, const Arguments& a) { return select(i, a, Keep::kMatches, Tested::kItem); }
Value reject_items(Interpreter& i, const Arguments& a) { return select(i, a, Keep::kOthers, Tested::kItem); }
Value select_attribute(Interpreter& i, const Arguments& a) { return select(i, a, Keep::kMatches, Tested::kAttribute); }
Value reject_attribute(Interpreter& i, const Arguments& a) { return select(i, a, Keep::kOthers, Tested::kAttribute); }

// map(attribute='name', default=…), or map('filter', arguments…).
Value map_items(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.subject.truth()) return interpreter.list({});
  Arguments by_name{.named = arguments.named};
  const Value* path = by_name.find(0, "attribute");
  const Value* otherwise = by_name.find(0, "default");
  std::vector<Value> mapped;
  for (const Value& item : interpreter.iterate(arguments.subject)) {
    interpreter.spend(1);
    if (path && path->as_text()) {
      Value value = attribute_path(interpreter, item, path->as_text()->text());
      mapped.push_back(value.is_undefined() && otherwise ? *otherwise : std::move(value));
      continue;
    }
    const std::string& name = text_argument(interpreter, arguments, 0, "filter").text();
    Arguments inner{.subject = item, .named = arguments.named};
    inner.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
    // Filters that take filters would nest without a bound.
    if (name == "map") interpreter.refuse("'map' cannot map 'map'");
    mapped.push_back(interpreter.filter(name, inner));
  }
  return interpreter.list(std::move(mapped));
}

bool is_true(const Value* argument) { return argument && argument->truth(); }

// Upper and lower case are the same to filters that compare, unless they are set otherwise.
Value folded(Interpreter& interpreter, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.as_text()) return value;
  return interpreter.filter("lower", {.subject = value});
}

struct Sorting {
  std::string by;  // an attribute of the items; empty: the items themselves
  bool case_sensitive = false, reversed = false;
};
Value sort_by(Interpreter& interpreter, std::vector<Value> items, const Sorting& sorting) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = folded(interpreter, attribute_path(interpreter, item, sorting.by), sorting.case_sensitive);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    interpreter.spend(1);
    return compare(a.first, b.first, interpreter.budget()) * (sorting.reversed ? -1 : 1) < 0;
  });
  std::transform(keyed.begin(), keyed.end(), items.begin(), [](auto& pair) { return std::move(pair.second); });
  return interpreter.list(std::move(items));
}

Value sort(Interpreter& interpreter, const Arguments& arguments) {
  const Value* path = arguments.find(2, "attribute");
  return sort_by(interpreter, interpreter.iterate(arguments.subject),
                 {.by = path && path->as_text() ? path->as_text()->text() : std::string(),
                  .case_sensitive = is_true(arguments.find(1, "case_sensitive")),
                  .reversed = is_true(arguments.find(0, "reverse"))});
}

// The entries of a map, by key unless told 'value'.
Value sort_map(Interpreter& interpreter, const Arguments& arguments) {
  const Value* by = arguments.find(1, "by");
  const bool by_value = by && by->as_text() && by->as_text()->text() == "value";
  std::vector<Value> pairs = interpreter.iterate(items(interpreter, {.subject = arguments.subject}));
  return sort_by(interpreter, std::move(pairs),
                 {.by = by_value ? "1" : "0",
                  .case_sensitive = is_true(arguments.find(0, "case_sensitive")),
                  .reversed = is_true(arguments.find(2, "reverse"))});
}

Value unique(Interpreter& interpreter, const Arguments& arguments) {
  const bool case_sensitive = is_true(arguments.find(0, "case_sensitive"));
  const Value* path = arguments.find(1, "attribute");
  const std::string by = path && path->as_text() ? path->as_text()->text() : std::string();
  std::vector<Value> kept, keys;
  for (const Value& item : interpreter.iterate(arguments.subject)) {
    const Value key = folded(interpreter, attribute_path(interpreter, item, by), case_sensitive);
    const bool known = std::any_of(keys.begin(), keys.end(),
                                   [&](const Value& other) { return equal(key, other, interpreter.budget()); });
    if (known) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return interpreter.list(std::move(kept));
}

Value extreme(Interpreter& interpreter, const Arguments& arguments, int wanted) {
  const std::vector<Value> all = interpreter.iterate(arguments.subject);
  if (all.empty()) return Value::undefined("the extreme of nothing");
  const Value* best = &all.front();
  for (const Value& item : all) {
    if (compare(item, *best, interpreter.budget()) * wanted > 0) best = &item;
  }
  return *best;
}
Value smallest(Interpreter& i, const Arguments& a) { return extreme(i, a, -1); }
Value largest(Interpreter& i, const Arguments& a) { return extreme(i, a, 1); }

Value sum(Interpreter& interpreter, const Arguments& arguments) {
  const Value* path = arguments.find(0, "attribute");
  const Value* start = arguments.find(1, "start");
  const std::string by = path && path->as_text() ? path->as_text()->text() : std::string();
  Value total = start ? *start : Value::integer(0);
  for (const Value& item : interpreter.iterate(arguments.subject)) {
    total = operate(interpreter, "+", total, attribute_path(interpreter, item, by));
  }
  return total;
}

// Lists of so many items each; the last may be filled up.
Value batch(Interpreter& interpreter, const Arguments& arguments) {
  const std::int64_t size = integer_argument(interpreter, arguments, 0, "linecount", 0);
  const Value* fill = arguments.find(1, "fill_with");
  if (size < 1 || size > 1'000'000) interpreter.refuse("'batch' needs a number of items");
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : interpreter.iterate(arguments.subject)) {
    row.push_back(item);
    if (std::ssize(row) == size) rows.push_back(interpreter.list(std::exchange(row, {})));
  }
  if (row.empty()) return interpreter.list(std::move(rows));
  if (fill && !fill->is_none()) {
    interpreter.spend(Budget::kItemSteps * static_cast<std::uint64_t>(size));
    row.resize(static_cast<std::size_t>(size), *fill);
  }
  rows.push_back(interpreter.list(std::move(row)));
  return interpreter.list(std::move(rows));
}

}  // namespace

Builtin find_list_filter(std::string_view name) {
  static const std::map<std::string_view, Builtin> kFilters = {
      {"length", length},
      {"count", length},
      {"join", join},
      {"items", items},
      {"list", to_list},
      {"first", first},
      {"last", last},
      {"reverse", reverse},
      {"select", select_items},
      {"reject", reject_items},
      {"selectattr", select_attribute},
      {"rejectattr", reject_attribute},
      {"map", map_items},
      {"sort", sort},
      {"dictsort", sort_map},
      {"unique", unique},
      {"min", smallest},
      {"max", largest},
      {"sum", sum},
      {"batch", batch},
  };
  const auto found = kFilters.find(name);
  return found == kFilters.end() ? nullptr : found->second;
}

}  // namespace yoke::text::jinja
