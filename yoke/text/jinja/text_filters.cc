// Filters that make texts and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "yoke/base/text.h"
#include "yoke/text/jinja/builtins.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

// Filters take what is no text too, and print it first.
Value printed(Interpreter& interpreter, const Arguments& arguments) {
  return interpreter.text(print(arguments.subject, interpreter.budget()));
}

Value change_case(Interpreter& interpreter, const Arguments& arguments, std::string (*change)(std::string_view)) {
  const MarkedText text = print(arguments.subject, interpreter.budget());
  interpreter.spend(text.size() / 2);
  return interpreter.text({change(text.text()), text.weakest()});
}

// Words begin after white space and brackets, and after a hyphen.
std::string title_case(std::string_view text) {
  std::string changed;
  bool in_word = false;
  for (; !text.empty(); text.remove_prefix(utf8_length(text))) {
    const std::string_view character = text.substr(0, utf8_length(text));
    changed += in_word ? lower_case(character) : upper_case(character);
    in_word = !is_white_space(code_point(character)) && std::string_view("-({[<").find(character) == std::string::npos;
  }
  return changed;
}

std::string capital(std::string_view text) {
  if (text.empty()) return {};
  const std::size_t first = utf8_length(text);
  return upper_case(text.substr(0, first)) + lower_case(text.substr(first));
}

Value upper(Interpreter& i, const Arguments& a) { return change_case(i, a, upper_case); }
Value lower(Interpreter& i, const Arguments& a) { return change_case(i, a, lower_case); }
Value title(Interpreter& i, const Arguments& a) { return change_case(i, a, title_case); }
Value capitalize(Interpreter& i, const Arguments& a) { return change_case(i, a, capital); }

Value trim_text(Interpreter& interpreter, const Arguments& arguments) {
  return find_text_method("strip")(
      interpreter,
      {.subject = printed(interpreter, arguments), .positional = arguments.positional, .named = arguments.named});
}

Value replace(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText text = print(arguments.subject, interpreter.budget());
  const std::string& old = text_argument(interpreter, arguments, 0, "old").text();
  const MarkedText& fresh = text_argument(interpreter, arguments, 1, "new");
  const std::int64_t most = integer_argument(interpreter, arguments, 2, "count", -1);
  if (old.empty()) interpreter.refuse("nothing cannot be replaced");
  MarkedText replaced;
  std::size_t kept = 0;
  std::int64_t count = 0;
  for (std::size_t at = find_text(text.text(), old); at != std::string::npos && (most < 0 || count < most); ++count) {
    interpreter.check_size(replaced.size() + fresh.size());
    interpreter.spend(1);
    replaced.append(text.slice(kept, at - kept));
    replaced.append(fresh);
    kept = at + old.size();
    at = find_text(text.text(), old, kept);
  }
  replaced.append(text.slice(kept, text.size()));
  return interpreter.text(std::move(replaced));
}

// separators=(',', ':') of tojson.
void read_separators(Interpreter& interpreter, const Value& value, JsonStyle& style) {
  const List* pair = value.as_list();
  if (!pair || pair->items.size() != 2 || !pair->items[0].as_text() || !pair->items[1].as_text()) {
    interpreter.refuse("'separators' must be two texts");
  }
  style.between_items = pair->items[0].as_text()->text();
  style.between_key_and_value = pair->items[1].as_text()->text();
}

Value tojson(Interpreter& interpreter, const Arguments& arguments) {
  const std::int64_t indent = integer_argument(interpreter, arguments, 0, "indent", -1);
  if (indent > 16) interpreter.refuse("'indent' must be at most 16");
  JsonStyle style{.indent = static_cast<int>(std::max<std::int64_t>(indent, -1))};
  for (const auto& [name, value] : arguments.named) {
    if (name == "ensure_ascii") {
      style.only_ascii = value.truth();
    } else if (name == "sort_keys") {
      style.sort_keys = value.truth();
    } else if (name == "separators") {
      if (!value.is_none()) read_separators(interpreter, value, style);
    } else if (name != "indent") {
      interpreter.refuse(fmt::format("tojson({}=…) is not supported", printable(name, 40)));
    }
  }
  return interpreter.text(to_json(arguments.subject, style, interpreter.budget()));
}

// How many blanks, or a text; lines that hold nothing stay so unless `blank`.
Value indent_lines(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText text = print(arguments.subject, interpreter.budget());
  const Value* given = arguments.find(0, "width");
  MarkedText margin;
  if (given && given->as_text()) {
    margin = *given->as_text();
  } else {
    const std::int64_t width = integer_argument(interpreter, arguments, 0, "width", 4);
    if (width > 1000) interpreter.refuse("'width' must be at most 1000");
    margin = {std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '), Origin::kTemplate};
  }
  const Value* first = arguments.find(1, "first");
  const Value* blank = arguments.find(2, "blank");
  // As in Jinja the last line counts, also where nothing follows the last line end.
  MarkedText whole = text;
  whole.append("\n", Origin::kTemplate);
  MarkedText indented;
  for (const TextLine& line : lines_of(interpreter, whole)) {
    const bool is_first = line.begin == 0;
    const bool wanted =
        is_first ? first && first->truth() : line.end > line.begin || (blank != nullptr && blank->truth());
    interpreter.check_size(indented.size() + margin.size() + line.end - line.begin);
    if (!is_first) indented.append("\n", Origin::kTemplate);
    if (wanted) indented.append(margin);
    indented.append(whole.slice(line.begin, line.end - line.begin));
    interpreter.spend(1 + margin.size() / 16);
  }
  return interpreter.text(std::move(indented));
}

// What Python's float() takes: white space around, a sign, nothing after.
std::optional<double> read_real(std::string_view text) {
  std::string_view digits = yoke::trim(text);
  if (digits.starts_with('+') && !digits.substr(1).starts_with('-')) digits.remove_prefix(1);
  double real = 0;
  const char* const end = digits.data() + digits.size();
  if (digits.empty() || std::from_chars(digits.data(), end, real).ptr != end) return std::nullopt;
  return real;
}

// And int(text, base): 0x, 0o or 0b may stand before the digits of their base.
std::optional<std::int64_t> read_whole(std::string_view text, int base) {
  std::string digits(yoke::trim(text));
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && lower_case(digits.substr(0, 2)) == prefix) digits.erase(0, 2);
  if (digits.empty() || digits.front() == '-') return std::nullopt;
  if (negative) digits.insert(0, 1, '-');
  std::int64_t whole = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, failure] = std::from_chars(digits.data(), end, whole, base);
  if (failure != std::errc{} || rest != end) return std::nullopt;
  return whole;
}

Value to_integer(Interpreter& interpreter, const Arguments& arguments) {
  const Value& value = arguments.subject;
  const auto cut = [](double real) -> std::optional<Value> {
    if (!(std::abs(real) < 9e18)) return std::nullopt;
    return Value::integer(static_cast<std::int64_t>(real));
  };
  if (value.as_integer()) return value;
  if (const bool* flag = value.as_bool()) return Value::integer(*flag ? 1 : 0);
  std::optional<Value> made;
  if (const double* real = value.as_real()) made = cut(*real);
  if (const MarkedText* text = value.as_text()) {
    interpreter.spend(1 + text->size() / 8);
    const std::int64_t base = integer_argument(interpreter, arguments, 1, "base", 10);
    if (base < 2 || base > 36) interpreter.refuse("the base of 'int' must be from 2 to 36");
    if (const auto whole = read_whole(text->text(), static_cast<int>(base))) return Value::integer(*whole);
    if (const auto real = read_real(text->text())) made = cut(*real);
  }
  if (made) return *made;
  const Value* otherwise = arguments.find(0, "default");
  return otherwise ? *otherwise : Value::integer(0);
}

Value to_real(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.subject.is_number()) return Value::real(arguments.subject.number());
  if (const MarkedText* text = arguments.subject.as_text()) {
    interpreter.spend(1 + text->size() / 8);
    if (const auto real = read_real(text->text())) return Value::real(*real);
  }
  const Value* otherwise = arguments.find(0, "default");
  return otherwise ? *otherwise : Value::real(0);
}

Value absolute(Interpreter& interpreter, const Arguments& arguments) {
  const Value& value = arguments.subject;
  if (!value.is_number()) interpreter.refuse(fmt::format("'abs' does not work with {}", value.kind()));
  return value.number() < 0 ? operate(interpreter, "-", Value::integer(0), value) : value;
}

Value round_number(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.subject.is_number()) interpreter.refuse("'round' needs a number");
  const std::int64_t digits = integer_argument(interpreter, arguments, 0, "precision", 0);
  if (digits < -300 || digits > 300) interpreter.refuse("'round' takes a precision of -300 to 300");
  const Value* method = arguments.find(1, "method");
  const std::string how = method && method->as_text() ? method->as_text()->text() : "common";
  const double number = arguments.subject.number();
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (how == "ceil") return Value::real(std::ceil(number * scale) / scale);
  if (how == "floor") return Value::real(std::floor(number * scale) / scale);
  if (how != "common") interpreter.refuse("'round' knows common, ceil and floor");
  if (digits < 0 || !std::isfinite(number)) return Value::real(std::nearbyint(number * scale) / scale);
  // By the decimal digits of the number itself, as Python does it: 2.675 is a little less than that.
  const std::string text = fmt::format("{:.{}f}", number, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return Value::real(rounded);
}

Value same(Interpreter&, const Arguments& arguments) { return arguments.subject; }

Value otherwise(Interpreter& interpreter, const Arguments& arguments) {
  const Value* empty_too = arguments.find(1, "boolean");
  const bool missing =
      arguments.subject.is_undefined() || (empty_too && empty_too->truth() && !arguments.subject.truth());
  if (!missing) return arguments.subject;
  const Value* given = arguments.find(0, "default_value");
  return given ? *given : interpreter.text({});
}

}  // namespace

Builtin find_text_filter(std::string_view name) {
  static const std::map<std::string_view, Builtin> kFilters = {
      {"trim", trim_text},    {"upper", upper},    {"lower", lower},         {"title", title},
      {"replace", replace},   {"tojson", tojson},  {"indent", indent_lines}, {"capitalize", capitalize},
      {"string", printed},    {"int", to_integer}, {"float", to_real},       {"abs", absolute},
      {"default", otherwise}, {"d", otherwise},    {"round", round_number},  {"safe", same},
  };
  const auto found = kFilters.find(name);
  return found == kFilters.end() ? nullptr : found->second;
}

}  // namespace yoke::text::jinja
