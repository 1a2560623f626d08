// The tests of the language, and the functions that transformers gives to templates.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/jinja/builtins.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

const Value& operand(Interpreter& interpreter, const Arguments& arguments) {
  const Value* given = arguments.find(0, "other");
  if (!given) interpreter.refuse("this test needs a value to compare with");
  return *given;
}

bool is_equal(Interpreter& i, const Arguments& a) { return equal(a.subject, operand(i, a), i.budget()); }
bool is_other(Interpreter& i, const Arguments& a) { return !is_equal(i, a); }
bool is_less(Interpreter& i, const Arguments& a) { return compare(a.subject, operand(i, a), i.budget()) < 0; }
bool is_at_most(Interpreter& i, const Arguments& a) { return compare(a.subject, operand(i, a), i.budget()) <= 0; }
bool is_greater(Interpreter& i, const Arguments& a) { return compare(a.subject, operand(i, a), i.budget()) > 0; }
bool is_at_least(Interpreter& i, const Arguments& a) { return compare(a.subject, operand(i, a), i.budget()) >= 0; }
bool is_in(Interpreter& i, const Arguments& a) { return i.contains(operand(i, a), a.subject); }

std::int64_t remainder(Interpreter& interpreter, const Arguments& arguments, std::int64_t by) {
  const Value rest = operate(interpreter, "%", arguments.subject, Value::integer(by));
  return rest.as_integer() ? *rest.as_integer() : 1;
}
bool is_even(Interpreter& i, const Arguments& a) { return remainder(i, a, 2) == 0; }
bool is_odd(Interpreter& i, const Arguments& a) { return remainder(i, a, 2) == 1; }
bool is_divisible(Interpreter& i, const Arguments& a) {
  return remainder(i, a, integer_argument(i, a, 0, "num", 1)) == 0;
}

bool is_defined(Interpreter&, const Arguments& a) { return !a.subject.is_undefined(); }
bool is_undefined(Interpreter&, const Arguments& a) { return a.subject.is_undefined(); }
bool is_none(Interpreter&, const Arguments& a) { return a.subject.is_none(); }
bool is_text(Interpreter&, const Arguments& a) { return a.subject.as_text(); }
bool is_map(Interpreter&, const Arguments& a) { return a.subject.as_map(); }
bool is_iterable(Interpreter&, const Arguments& a) {
  return a.subject.as_list() || a.subject.as_map() || a.subject.as_text() || a.subject.is_undefined();
}
bool is_sequence(Interpreter&, const Arguments& a) {
  return a.subject.as_list() || a.subject.as_map() || a.subject.as_text();
}
bool is_number(Interpreter&, const Arguments& a) { return a.subject.is_number(); }
bool is_integer(Interpreter&, const Arguments& a) { return a.subject.as_integer(); }
bool is_real(Interpreter&, const Arguments& a) { return a.subject.as_real(); }
bool is_bool(Interpreter&, const Arguments& a) { return a.subject.as_bool(); }
bool is_true(Interpreter&, const Arguments& a) { return a.subject.as_bool() && *a.subject.as_bool(); }
bool is_false(Interpreter&, const Arguments& a) { return a.subject.as_bool() && !*a.subject.as_bool(); }
bool is_callable(Interpreter&, const Arguments& a) { return a.subject.as_function(); }
bool is_lower(Interpreter& i, const Arguments& a) {
  const std::string text = print(a.subject, i.budget()).text();
  i.spend(text.size());
  return lower_case(text) == text && upper_case(text) != text;
}
bool is_upper(Interpreter& i, const Arguments& a) {
  const std::string text = print(a.subject, i.budget()).text();
  i.spend(text.size());
  return upper_case(text) == text && lower_case(text) != text;
}

Value raise_exception(Interpreter& interpreter, const Arguments& arguments) {
  const Value* message = arguments.find(0, "message");
  const std::string why = message ? printable(print(*message, interpreter.budget()).text()) : std::string();
  interpreter.refuse(fmt::format("the template refuses this: {}", why));
}

Value strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText& format = text_argument(interpreter, arguments, 0, "format");
  char text[1024];
  const bool fits = format.size() < 200;
  const std::size_t size = fits ? std::strftime(text, sizeof text, format.text().c_str(), &interpreter.clock()) : 0;
  if (!fits) interpreter.refuse("the format of strftime_now is too long");
  return interpreter.text({replace_invalid_utf8(std::string_view(text, size)), format.weakest()});
}

Value make_namespace(Interpreter& interpreter, const Arguments& arguments) {
  Namespace made;
  if (const Value* from = arguments.positional.empty() ? nullptr : arguments.positional.data()) {
    if (!from->as_map()) interpreter.refuse("a namespace is made of names and values");
    interpreter.spend(Budget::kEntrySteps * from->as_map()->entries.size());
    for (const auto& [name, value] : from->as_map()->entries) {
      if (!name.as_text()) interpreter.refuse("the names of a namespace are texts");
      made.entries.emplace_back(name.as_text()->text(), value);
    }
  }
  for (const auto& [name, value] : arguments.named) {
    if (value.as_namespace()) interpreter.refuse("a namespace cannot hold a namespace");
    made.entries.emplace_back(name, value);
  }
  return Value::name_space(std::move(made));
}

Value make_map(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (!arguments.positional.empty()) {
    const Map* from = arguments.positional[0].as_map();
    if (!from) interpreter.refuse("'dict' needs a map, or names and values");
    interpreter.spend(from->entries.size());
    entries = from->entries;
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(Value::text(name, Origin::kTemplate), value);
  return interpreter.map(std::move(entries));
}

Value range(Interpreter& interpreter, const Arguments& arguments) {
  constexpr std::size_t kMaxItems = 1'000'000;
  const bool one = arguments.positional.size() == 1;
  const std::int64_t start = one ? 0 : integer_argument(interpreter, arguments, 0, "start", 0);
  const std::int64_t stop = integer_argument(interpreter, arguments, one ? 0 : 1, "stop", 0);
  const std::int64_t step = integer_argument(interpreter, arguments, 2, "step", 1);
  if (step == 0) interpreter.refuse("the step of a range cannot be 0");
  std::vector<Value> numbers;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (numbers.size() >= kMaxItems) interpreter.refuse("a range is too long");
    interpreter.spend(1);
    numbers.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return interpreter.list(std::move(numbers));
}

}  // namespace

BuiltinTest find_test(std::string_view name) {
  static const std::map<std::string_view, BuiltinTest> kTests = {
      {"defined", is_defined},
      {"undefined", is_undefined},
      {"none", is_none},
      {"string", is_text},
      {"mapping", is_map},
      {"iterable", is_iterable},
      {"sequence", is_sequence},
      {"number", is_number},
      {"integer", is_integer},
      {"float", is_real},
      {"boolean", is_bool},
      {"true", is_true},
      {"false", is_false},
      {"callable", is_callable},
      {"lower", is_lower},
      {"upper", is_upper},
      {"even", is_even},
      {"odd", is_odd},
      {"equalto", is_equal},
      {"eq", is_equal},
      {"==", is_equal},
      {"sameas", is_equal},
      {"ne", is_other},
      {"!=", is_other},
      {"lt", is_less},
      {"lessthan", is_less},
      {"<", is_less},
      {"le", is_at_most},
      {"<=", is_at_most},
      {"gt", is_greater},
      {"greaterthan", is_greater},
      {">", is_greater},
      {"ge", is_at_least},
      {">=", is_at_least},
      {"in", is_in},
      {"divisibleby", is_divisible},
  };
  const auto found = kTests.find(name);
  return found == kTests.end() ? nullptr : found->second;
}

Builtin find_function(std::string_view name) {
  static const std::map<std::string_view, Builtin> kFunctions = {
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
      {"namespace", make_namespace},
      {"dict", make_map},
      {"range", range},
  };
  const auto found = kFunctions.find(name);
  return found == kFunctions.end() ? nullptr : found->second;
}

}  // namespace yoke::text::jinja
