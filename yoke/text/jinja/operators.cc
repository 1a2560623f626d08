// Arithmetic, joining, slices and characters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/text/jinja/builtins.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

// Python rounds towards negative infinity, C towards zero.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t power(Interpreter& interpreter, std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    interpreter.spend(1);
    if (__builtin_mul_overflow(result, base, &result)) interpreter.refuse("a number becomes too large");
  }
  return result;
}

std::int64_t whole(const Value& value) {
  if (const bool* flag = value.as_bool()) return *flag ? 1 : 0;
  return *value.as_integer();
}

Value operate_integers(Interpreter& interpreter, std::string_view name, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (name == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (name == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (name == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (name == "**") {
    if (b < 0) return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
    result = power(interpreter, a, b);
  } else {
    if (b == 0) interpreter.refuse("a division by zero");
    overflow = b == -1 && a == INT64_MIN;
    if (!overflow && name == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
    if (!overflow) result = name == "//" ? floor_divide(a, b) : a - b * floor_divide(a, b);
  }
  if (overflow) interpreter.refuse("a number becomes too large");
  return Value::integer(result);
}

Value operate_reals(Interpreter& interpreter, std::string_view name, double a, double b) {
  if (name == "+") return Value::real(a + b);
  if (name == "-") return Value::real(a - b);
  if (name == "*") return Value::real(a * b);
  if (name == "**") return Value::real(std::pow(a, b));
  if (b == 0) interpreter.refuse("a division by zero");
  if (name == "/") return Value::real(a / b);
  return Value::real(name == "//" ? std::floor(a / b) : a - b * std::floor(a / b));
}

Value join(Interpreter& interpreter, const MarkedText& left, const MarkedText& right) {
  interpreter.check_size(left.size() + right.size());
  MarkedText joined = left;
  joined.append(right);
  return interpreter.text(std::move(joined));
}

Value repeat(Interpreter& interpreter, const MarkedText& text, std::int64_t count) {
  MarkedText repeated;
  for (std::int64_t i = 0; i < count && text.size() > 0; ++i) {
    interpreter.check_size(repeated.size() + text.size());
    repeated.append(text);
  }
  return interpreter.text(std::move(repeated));
}

}  // namespace

Value operate(Interpreter& interpreter, std::string_view name, const Value& left, const Value& right) {
  if (name == "~") return join(interpreter, print(left, interpreter.budget()), print(right, interpreter.budget()));
  if (name == "+" && left.as_text() && right.as_text()) return join(interpreter, *left.as_text(), *right.as_text());
  if (name == "+" && left.as_list() && right.as_list() && left.as_list()->kind == right.as_list()->kind) {
    interpreter.spend(left.as_list()->items.size() + right.as_list()->items.size());
    std::vector<Value> items = left.as_list()->items;
    items.insert(items.end(), right.as_list()->items.begin(), right.as_list()->items.end());
    return interpreter.list(std::move(items), left.as_list()->kind);
  }
  if (name == "*" && left.as_text() && right.as_integer()) {
    return repeat(interpreter, *left.as_text(), *right.as_integer());
  }
  if (left.is_number() && right.is_number()) {
    const bool reals = left.as_real() || right.as_real();
    return reals ? operate_reals(interpreter, name, left.number(), right.number())
                 : operate_integers(interpreter, name, whole(left), whole(right));
  }
  const Value& odd = left.is_undefined() ? left : right;
  if (odd.is_undefined()) interpreter.refuse(fmt::format("'{}' is undefined", odd.undefined_name()));
  interpreter.refuse(fmt::format("'{}' does not work with {} and {}", name, left.kind(), right.kind()));
}

std::vector<TextLine> lines_of(Interpreter& interpreter, const MarkedText& text) {
  interpreter.spend(1 + text.size() / 8);
  std::vector<TextLine> lines;
  const std::string_view all = text.text();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < all.size();) {
    const char32_t code = code_point(all.substr(at));
    std::size_t next = at + utf8_length(all.substr(at));
    const bool ends = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                      code == 0x2028 || code == 0x2029;
    if (ends) {
      if (code == '\r' && next < all.size() && all[next] == '\n') ++next;
      interpreter.spend(Budget::kItemSteps);
      lines.push_back({begin, at, next});
      begin = next;
    }
    at = next;
  }
  if (begin < all.size()) lines.push_back({begin, all.size(), all.size()});
  return lines;
}

std::vector<std::size_t> character_places(Interpreter& interpreter, const MarkedText& text) {
  interpreter.spend(1 + text.size() / 4);
  std::vector<std::size_t> places{0};
  while (places.back() < text.size()) {
    places.push_back(places.back() + utf8_length(std::string_view(text.text()).substr(places.back())));
  }
  return places;
}

std::vector<Value> characters(Interpreter& interpreter, const MarkedText& text) {
  const std::vector<std::size_t> places = character_places(interpreter, text);
  std::vector<Value> all;
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    all.push_back(interpreter.text(text.slice(places[i], places[i + 1] - places[i])));
  }
  return all;
}

Value slice(Interpreter& interpreter, const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (!value.as_list() && !value.as_text()) interpreter.refuse(fmt::format("{} cannot be sliced", value.kind()));
  const MarkedText* whole_text = value.as_text();
  const std::vector<std::size_t> places =
      whole_text ? character_places(interpreter, *whole_text) : std::vector<std::size_t>{0};
  const auto count = static_cast<std::int64_t>(whole_text ? places.size() - 1 : value.as_list()->items.size());
  const auto number = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is_none() || bound.is_undefined()) return otherwise;
    if (!bound.as_integer()) interpreter.refuse(fmt::format("the bound of a slice cannot be {}", bound.kind()));
    return *bound.as_integer();
  };
  const std::int64_t stride = number(step, 1);
  if (stride == 0) interpreter.refuse("the step of a slice cannot be 0");
  // Python's rules: negative bounds count from the end, and all are cut to where items are.
  const std::int64_t low = stride > 0 ? 0 : -1;
  const std::int64_t high = stride > 0 ? count : count - 1;
  const auto place = [&](const Value& bound, std::int64_t otherwise) {
    const std::int64_t given = number(bound, otherwise);
    const bool is_given = !bound.is_none() && !bound.is_undefined();
    return std::clamp(given < 0 && is_given ? given + count : given, low, high);
  };
  const std::int64_t begin = place(start, stride > 0 ? low : high);
  const std::int64_t end = place(stop, stride > 0 ? high : low);
  MarkedText part;
  std::vector<Value> kept;
  const auto keep = [&](std::int64_t index) {
    const auto at = static_cast<std::size_t>(index);
    interpreter.spend(1);
    if (whole_text) {
      part.append(whole_text->slice(places[at], places[at + 1] - places[at]));
    } else {
      kept.push_back(value.as_list()->items[at]);
    }
  };
  if (whole_text && stride == 1) {
    const auto from = static_cast<std::size_t>(begin);
    const auto to = static_cast<std::size_t>(std::max(begin, end));
    part = whole_text->slice(places[from], places[to] - places[from]);
  } else if (stride > 0) {
    for (std::int64_t i = begin; i < end; i += std::min(stride, count)) keep(i);
  } else {
    for (std::int64_t i = begin; i > end; i += std::max(stride, -count)) keep(i);
  }
  return whole_text ? interpreter.text(std::move(part)) : interpreter.list(std::move(kept), value.as_list()->kind);
}

const MarkedText& text_subject(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText* text = arguments.subject.as_text();
  if (text) return *text;
  const std::string name = arguments.subject.undefined_name();
  interpreter.refuse(name.empty() ? fmt::format("this needs a text, not {}", arguments.subject.kind())
                                  : fmt::format("'{}' is undefined", name));
}

const MarkedText& text_argument(Interpreter& interpreter, const Arguments& arguments, std::size_t position,
                                std::string_view name) {
  const Value* value = arguments.find(position, name);
  if (!value || !value->as_text()) interpreter.refuse(fmt::format("'{}' must be a text", name));
  return *value->as_text();
}

std::int64_t integer_argument(Interpreter& interpreter, const Arguments& arguments, std::size_t position,
                              std::string_view name, std::int64_t otherwise) {
  const Value* value = arguments.find(position, name);
  if (!value || value->is_none()) return otherwise;
  if (!value->as_integer()) interpreter.refuse(fmt::format("'{}' must be a whole number", name));
  return *value->as_integer();
}

}  // namespace yoke::text::jinja
