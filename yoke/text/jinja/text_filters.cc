// Filters that make texts and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "yoke/base/text.h"
#include "yoke/text/jinja/builtins.h"
#include "yoke/text/unicode.h"

namespace yoke::jinja {
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

Value indent_lines(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText text = print(arguments.subject, interpreter.budget());
  const std::int64_t width = integer_argument(interpreter, arguments, 0, "width", 4);
  if (width < 0 || width > 100) interpreter.refuse("'width' must be from 0 to 100");
  const Value* first = arguments.find(1, "first");
  const std::string blanks(static_cast<std::size_t>(width), ' ');
  MarkedText indented;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.text().find('\n', begin), text.size());
    const bool wanted = begin == 0 ? first && first->truth() : end > begin;
    interpreter.check_size(indented.size() + end - begin);
    if (wanted) indented.append(blanks, Origin::kTemplate);
    indented.append(text.slice(begin, end + 1 - begin));
    begin = end + 1;
  }
  return interpreter.text(std::move(indented));
}

Value to_integer(Interpreter& interpreter, const Arguments& arguments) {
  const Value& value = arguments.subject;
  if (const double* real = value.as_real(); real && std::abs(*real) < 9e18) {
    return Value::integer(static_cast<std::int64_t>(*real));
  }
  if (value.as_integer()) return value;
  if (const bool* flag = value.as_bool()) return Value::integer(*flag ? 1 : 0);
  std::int64_t whole = 0;
  if (const MarkedText* text = value.as_text()) {
    const std::string_view digits = yoke::trim(text->text());
    const char* const end = digits.data() + digits.size();
    if (!digits.empty() && std::from_chars(digits.data(), end, whole).ptr == end) return Value::integer(whole);
    double real = 0;
    if (!digits.empty() && std::from_chars(digits.data(), end, real).ptr == end && std::abs(real) < 9e18) {
      return Value::integer(static_cast<std::int64_t>(real));
    }
  }
  return Value::integer(integer_argument(interpreter, arguments, 0, "default", 0));
}

Value to_real(Interpreter&, const Arguments& arguments) {
  if (arguments.subject.is_number()) return Value::real(arguments.subject.number());
  double real = 0;
  if (const MarkedText* text = arguments.subject.as_text()) {
    const std::string_view digits = yoke::trim(text->text());
    std::from_chars(digits.data(), digits.data() + digits.size(), real);
  }
  return Value::real(real);
}

Value absolute(Interpreter& interpreter, const Arguments& arguments) {
  const Value& value = arguments.subject;
  if (!value.is_number()) interpreter.refuse(fmt::format("'abs' does not work with {}", value.kind()));
  return value.number() < 0 ? operate(interpreter, "-", Value::integer(0), value) : value;
}

Value round_number(Interpreter& interpreter, const Arguments& arguments) {
  if (!arguments.subject.is_number()) interpreter.refuse("'round' needs a number");
  const std::int64_t digits = integer_argument(interpreter, arguments, 0, "precision", 0);
  const double scale = std::pow(10.0, static_cast<double>(digits));
  return Value::real(std::nearbyint(arguments.subject.number() * scale) / scale);
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

}  // namespace yoke::jinja
