// The expressions of a template.
#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/jinja/builtins.h"
#include "yoke/text/jinja/interpreter.h"

namespace yoke::text::jinja {

Value Interpreter::evaluate_known(const Expression& expression, Scope& scope) {
  const auto part = [&](std::size_t index) { return evaluate(*expression.parts[index], scope); };
  switch (expression.kind) {
    case Expression::Kind::kLiteral:
      return expression.literal;
    case Expression::Kind::kName:
      return evaluate_name(expression, scope);
    case Expression::Kind::kList:
    case Expression::Kind::kTuple: {
      std::vector<Value> items;
      for (std::size_t i = 0; i < expression.parts.size(); ++i) items.push_back(part(i));
      return list(std::move(items), expression.kind == Expression::Kind::kTuple ? ListKind::kTuple : ListKind::kList);
    }
    case Expression::Kind::kMap:
      return evaluate_map(expression, scope);
    case Expression::Kind::kUnpacked:
      refuse("'*' stands before an argument only");
    case Expression::Kind::kAttribute:
      return attribute(part(0), expression.name);
    case Expression::Kind::kItem:
      return item(part(0), part(1));
    case Expression::Kind::kSlice:
      return evaluate_slice(expression, scope);
    case Expression::Kind::kCall:
      return evaluate_call(expression, scope);
    case Expression::Kind::kFilter:
      return evaluate_filter(expression, scope);
    case Expression::Kind::kTest:
      return Value::boolean(evaluate_test(expression, scope));
    case Expression::Kind::kNot:
      return Value::boolean(!part(0).truth());
    case Expression::Kind::kUnary:
      return evaluate_unary(expression, scope);
    case Expression::Kind::kBinary: {
      const Value left = part(0);
      return operate(*this, expression.name, left, part(1));
    }
    case Expression::Kind::kCompare:
      return evaluate_compare(expression, scope);
    case Expression::Kind::kAnd: {
      Value left = part(0);
      return left.truth() ? part(1) : left;
    }
    case Expression::Kind::kOr: {
      Value left = part(0);
      return left.truth() ? left : part(1);
    }
    case Expression::Kind::kConditional:
      if (part(0).truth()) return part(1);
      return expression.parts[2] ? part(2) : Value::undefined("the else of an if");
  }
  return {};
}

Value Interpreter::evaluate_name(const Expression& name, Scope& scope) {
  if (const Value* value = find(name.name, scope)) return *value;
  if (find_function(name.name)) return Value::function({.name = name.name});
  return Value::undefined(name.name);
}

Value Interpreter::evaluate_map(const Expression& map, Scope& scope) {
  Map made;
  for (std::size_t i = 0; i + 1 < map.parts.size(); i += 2) {
    const Value key = evaluate(*map.parts[i], scope);
    if (!key.as_text() && !key.is_number() && !key.is_none()) {
      refuse(fmt::format("the key of a map cannot be {}", key.kind()));
    }
    Value value = evaluate(*map.parts[i + 1], scope);
    spend(made.entries.size() / 8);
    if (const Value* known = made.find(key)) {
      const_cast<Value&>(*known) = std::move(value);  // it is ours: the last of equal keys counts
    } else {
      made.entries.emplace_back(key, std::move(value));
    }
  }
  return this->map(std::move(made.entries));
}

Value Interpreter::evaluate_slice(const Expression& expression, Scope& scope) {
  const auto bound = [&](std::size_t index) {
    return expression.parts[index] ? evaluate(*expression.parts[index], scope) : Value::none();
  };
  const Value value = bound(0);
  const Value start = bound(1);
  const Value stop = bound(2);
  return slice(*this, value, start, stop, bound(3));
}

Value Interpreter::evaluate_unary(const Expression& unary, Scope& scope) {
  const Value value = evaluate(*unary.parts[0], scope);
  if (const double* real = value.as_real()) return Value::real(unary.name == "-" ? -*real : *real);  // -0.0 too
  return operate(*this, unary.name, Value::integer(0), value);
}

bool Interpreter::contains(const Value& container, const Value& value) {
  if (const MarkedText* text = container.as_text()) {
    const MarkedText* part = value.as_text();
    if (!part) refuse(fmt::format("{} cannot be in a text", value.kind()));
    spend(text->size() / 16);
    return find_text(text->text(), part->text()) != std::string::npos;
  }
  if (const Map* map = container.as_map()) {
    spend(map->entries.size() / 8);
    return map->find(value) != nullptr;
  }
  if (const List* list = container.as_list()) {
    return std::any_of(list->items.begin(), list->items.end(),
                       [&](const Value& item) { return equal(item, value, budget_); });
  }
  if (container.is_undefined()) return false;
  refuse(fmt::format("nothing can be in {}", container.kind()));
}

bool Interpreter::holds(std::string_view comparison, const Value& left, const Value& right) {
  if (comparison == "==") return equal(left, right, budget_);
  if (comparison == "!=") return !equal(left, right, budget_);
  if (comparison == "in") return contains(right, left);
  if (comparison == "not in") return !contains(right, left);
  const int order = compare(left, right, budget_);
  if (comparison == "<") return order < 0;
  if (comparison == "<=") return order <= 0;
  if (comparison == ">") return order > 0;
  return order >= 0;
}

Value Interpreter::evaluate_compare(const Expression& chain, Scope& scope) {
  Value left = evaluate(*chain.parts[0], scope);
  for (std::size_t i = 0; i < chain.operators.size(); ++i) {
    Value right = evaluate(*chain.parts[i + 1], scope);
    if (!holds(chain.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Arguments Interpreter::evaluate_arguments(const Expression& call, Scope& scope) {
  Arguments arguments{.subject = evaluate(*call.parts[0], scope)};
  for (std::size_t i = 1; i < call.parts.size(); ++i) {
    const Expression& part = *call.parts[i];
    if (part.kind != Expression::Kind::kUnpacked) {
      arguments.positional.push_back(evaluate(part, scope));
      continue;
    }
    const std::vector<Value> items = iterate(evaluate(*part.parts[0], scope));
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  for (const auto& [name, value] : call.named) {
    if (value->kind != Expression::Kind::kUnpacked) {
      arguments.named.emplace_back(name, evaluate(*value, scope));
    } else {
      unpack_named(evaluate(*value->parts[0], scope), arguments);
    }
  }
  return arguments;
}

void Interpreter::unpack_named(const Value& value, Arguments& arguments) {
  const Map* map = value.as_map();
  if (!map) refuse(fmt::format("** needs a map, not {}", value.kind()));
  spend(Budget::kEntrySteps * map->entries.size());
  for (const auto& [key, held] : map->entries) {
    if (!key.as_text()) refuse("the names of arguments are texts");
    const std::string& name = key.as_text()->text();
    spend(arguments.named.size() / 8);
    const bool twice = std::any_of(arguments.named.begin(), arguments.named.end(),
                                   [&](const auto& known) { return known.first == name; });
    if (twice) refuse(fmt::format("the argument '{}' is given twice", printable(name, 60)));
    arguments.named.emplace_back(name, held);
  }
}

Value Interpreter::evaluate_call(const Expression& call, Scope& scope) {
  Arguments arguments = evaluate_arguments(call, scope);
  line_ = call.line;
  const Value callee = arguments.subject;
  const Function* function = callee.as_function();
  if (!function) {
    const std::string name = callee.undefined_name();
    refuse(name.empty() ? fmt::format("{} cannot be called", callee.kind())
                        : fmt::format("there is no function '{}'", printable(name, 60)));
  }
  if (function->macro) return call_macro(*function, std::move(arguments));
  if (!function->receiver) return find_function(function->name)(*this, arguments);
  arguments.subject = *function->receiver;
  const bool is_text = arguments.subject.as_text() != nullptr;
  return (is_text ? find_text_method(function->name) : find_map_method(function->name))(*this, arguments);
}

Value Interpreter::filter(std::string_view name, const Arguments& arguments) {
  Builtin found = find_text_filter(name);
  if (!found) found = find_list_filter(name);
  if (!found) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}, line {}: the filter '{}' is not supported", name_, line_, printable(name, 60)));
  }
  return found(*this, arguments);
}

bool Interpreter::test(std::string_view name, const Arguments& arguments) {
  const BuiltinTest found = find_test(name);
  if (!found) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}, line {}: the test '{}' is not supported", name_, line_, printable(name, 60)));
  }
  return found(*this, arguments);
}

Value Interpreter::evaluate_filter(const Expression& expression, Scope& scope) {
  const Arguments arguments = evaluate_arguments(expression, scope);
  line_ = expression.line;
  return filter(expression.name, arguments);
}

bool Interpreter::evaluate_test(const Expression& expression, Scope& scope) {
  const Arguments arguments = evaluate_arguments(expression, scope);
  line_ = expression.line;
  return test(expression.name, arguments);
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  if (const List* list = value.as_list()) {
    spend(1 + Budget::kItemSteps * list->items.size());
    return list->items;
  }
  if (const Map* map = value.as_map()) {
    std::vector<Value> keys;
    spend(Budget::kItemSteps * map->entries.size());
    for (const auto& [key, entry] : map->entries) keys.push_back(key);
    return keys;
  }
  if (const MarkedText* whole = value.as_text()) return characters(*this, *whole);
  if (!value.is_undefined()) refuse(fmt::format("{} has no items to go through", value.kind()));
  return {};
}

Value Interpreter::attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) refuse(fmt::format("'{}' is undefined", printable(value.undefined_name(), 60)));
  const auto method = [&] { return Value::function({std::string(name), std::make_shared<const Value>(value)}); };
  if (value.as_text() && find_text_method(name)) return method();
  if (const Map* map = value.as_map()) {
    if (find_map_method(name)) return method();
    spend(map->entries.size() / 8);
    if (const Value* found = map->find(name)) return *found;
  }
  if (const Namespace* entries = value.as_namespace()) {
    spend(entries->entries.size() / 8);
    for (const auto& [key, held] : entries->entries) {
      if (key == name) return held;
    }
  }
  return Value::undefined(std::string(name));
}

Value Interpreter::item(const Value& value, const Value& key) {
  if (value.is_undefined()) refuse(fmt::format("'{}' is undefined", printable(value.undefined_name(), 60)));
  if (const MarkedText* name = key.as_text()) {
    const Map* map = value.as_map();
    if (map) spend(map->entries.size() / 8);
    const Value* found = map ? map->find(name->text()) : nullptr;
    return found ? *found : attribute(value, name->text());
  }
  if (const Map* map = value.as_map()) {
    spend(map->entries.size() / 8);
    const Value* found = map->find(key);
    return found ? *found : Value::undefined(fmt::format("an item of {}", value.kind()));
  }
  const std::int64_t* index = key.as_integer();
  if (!index) return Value::undefined(fmt::format("an item of {}", value.kind()));
  const MarkedText* whole = value.as_text();
  const List* list = value.as_list();
  // Where the characters of a text begin, and its end; values of all of them would be too dear for one.
  const std::vector<std::size_t> places = whole ? character_places(*this, *whole) : std::vector<std::size_t>{0};
  const auto count = static_cast<std::int64_t>(list ? list->items.size() : places.size() - 1);
  const std::int64_t at = *index < 0 ? count + *index : *index;
  if (at < 0 || at >= count) return Value::undefined(fmt::format("item {} of {}", *index, value.kind()));
  const auto place = static_cast<std::size_t>(at);
  return list ? list->items[place] : text(whole->slice(places[place], places[place + 1] - places[place]));
}

}  // namespace yoke::text::jinja
