#include "yoke/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::cli {
namespace {

// "-p,--prompt" is called --prompt in messages.
std::string long_name(const std::string& name) { return split(name, ',').back(); }

template <class T, class Parse>
std::function<void(const std::string&)> setter(const std::string& name, T& target, Parse parse) {
  return [name = long_name(name), &target, parse](const std::string& text) {
    const auto parsed = parse(text);
    if (!parsed) {
      throw Error(ErrorCode::kUsage, fmt::format("{}: {}", name, parsed.error().message()), parsed.error().hint());
    }
    target = *parsed;
  };
}

template <class Number>
Result<Number> parse_number(const std::string& text) {
  Number number = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool finite = number - number == 0;  // from_chars takes "inf" and "nan"
  if (failure == std::errc{} && rest == text.data() + text.size() && finite) return number;
  if (failure == std::errc::result_out_of_range && rest == text.data() + text.size()) {
    using Limits = std::numeric_limits<Number>;
    return Unexpected(Error(ErrorCode::kInvalid, fmt::format("{} is out of range", printable(text, 40)),
                            fmt::format("{} to {}", Limits::lowest(), Limits::max())));
  }
  const std::string_view wanted = std::is_floating_point_v<Number> ? "a number"
                                  : std::is_signed_v<Number>       ? "a whole number"
                                                                   : "a whole number from 0";
  return Unexpected(Error(ErrorCode::kInvalid, fmt::format("'{}' is not {}", printable(text, 40), wanted)));
}

double number_of(double number) { return number; }
double number_of(Seconds time) { return time.value; }

// The same for what must lie in a range.
template <class T, class Parse>
std::function<void(const std::string&)> setter(const std::string& name, T& target, Parse parse,
                                               const NumberRange& range) {
  const auto parse_in_range = [name = long_name(name), parse, range](const std::string& text) {
    const auto parsed = parse(text);
    if (!parsed) return parsed;
    const double number = number_of(*parsed);
    const bool fits = (!range.min || number >= *range.min) && (!range.max || number <= *range.max);
    if (!fits) {
      throw Error(ErrorCode::kUsage, fmt::format("{} cannot be {}", name, printable(text, 40)), to_string(range));
    }
    return parsed;
  };
  return setter(name, target, parse_in_range);
}

Result<Seconds> parse_time(const std::string& text) {
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  return parse_seconds(bare ? text + "s" : text);
}

std::function<void(const std::string&)> choice_setter(const std::string& name, std::vector<std::string> choices,
                                                      std::string& target) {
  return [name = long_name(name), choices = std::move(choices), &target](const std::string& text) {
    if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
      throw Error(ErrorCode::kUsage, fmt::format("{} cannot be '{}'", name, printable(text, 40)),
                  suggest(text, choices, "choices"));
    }
    target = text;
  };
}

}  // namespace

std::string to_string(const NumberRange& range) {
  if (range.min && range.max) return fmt::format("{} to {}", *range.min, *range.max);
  if (range.min) return fmt::format("at least {}", *range.min);
  return range.max ? fmt::format("at most {}", *range.max) : std::string();
}

void OptionTable::add_value(std::string name, std::string value_name, std::string help,
                            std::function<void(const std::string&)> set, NumberRange range) {
  rows_.push_back({.kind = OptionRow::Kind::kValue,
                   .name = std::move(name),
                   .value_name = std::move(value_name),
                   .help = std::move(help),
                   .range = range,
                   .set = std::move(set)});
}

void OptionTable::flag(std::string name, std::string help, bool& target) {
  rows_.push_back({.kind = OptionRow::Kind::kFlag,
                   .name = std::move(name),
                   .help = std::move(help),
                   .set = [&target](const std::string&) { target = true; }});
}

void OptionTable::value(std::string name, std::string value_name, std::string help, std::string& target) {
  add_value(std::move(name), std::move(value_name), std::move(help),
            [&target](const std::string& text) { target = text; });
}
void OptionTable::values(std::string name, std::string value_name, std::string help, std::vector<std::string>& target) {
  add_value(std::move(name), std::move(value_name), std::move(help),
            [&target](const std::string& text) { target.push_back(text); });
}
void OptionTable::value(std::string name, std::string value_name, std::string help,
                        std::optional<std::string>& target) {
  add_value(std::move(name), std::move(value_name), std::move(help),
            [&target](const std::string& text) { target = text; });
}
void OptionTable::value(std::string name, std::string value_name, std::string help, std::filesystem::path& target) {
  add_value(std::move(name), std::move(value_name), std::move(help),
            [&target](const std::string& text) { target = text; });
}
void OptionTable::value(std::string name, std::string value_name, std::string help, int& target, NumberRange range) {
  auto set = setter(name, target, parse_number<int>, range);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set), range);
}
void OptionTable::value(std::string name, std::string value_name, std::string help, std::optional<int>& target,
                        NumberRange range) {
  auto set = setter(name, target, parse_number<int>, range);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set), range);
}
void OptionTable::value(std::string name, std::string value_name, std::string help,
                        std::optional<std::uint64_t>& target) {
  auto set = setter(name, target, parse_number<std::uint64_t>);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set));
}
void OptionTable::value(std::string name, std::string value_name, std::string help, std::optional<double>& target,
                        NumberRange range) {
  auto set = setter(name, target, parse_number<double>, range);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set), range);
}
void OptionTable::value(std::string name, std::string value_name, std::string help, Bytes& target) {
  auto set = setter(name, target, parse_bytes);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set));
}
void OptionTable::value(std::string name, std::string value_name, std::string help, BitsPerSecond& target) {
  auto set = setter(name, target, parse_bits_per_second);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set));
}
void OptionTable::value(std::string name, std::string value_name, std::string help,
                        std::optional<BitsPerSecond>& target) {
  auto set = [name, &target](const std::string& text) {
    if (text == "none") {
      target.reset();
      return;
    }
    BitsPerSecond rate;
    setter(name, rate, parse_bits_per_second)(text);
    target = rate;
  };
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set));
}
void OptionTable::value(std::string name, std::string value_name, std::string help, Seconds& target,
                        NumberRange range) {
  auto set = setter(name, target, parse_time, range);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set), range);
}

void OptionTable::choice(std::string name, std::string value_name, std::string help, std::vector<std::string> choices,
                         std::string& target) {
  auto set = choice_setter(name, choices, target);
  add_value(std::move(name), std::move(value_name), std::move(help), std::move(set));
  rows_.back().choices = std::move(choices);
}

void OptionTable::positional(std::string name, std::string help, std::string& target, Presence presence,
                             std::vector<std::string> choices) {
  auto set = choice_setter(name, choices, target);
  rows_.push_back({.kind = OptionRow::Kind::kPositional,
                   .name = std::move(name),
                   .help = std::move(help),
                   .presence = presence,
                   .choices = std::move(choices),
                   .set = std::move(set)});
}

void OptionTable::positional(std::string name, std::string help, std::optional<std::string>& target,
                             Presence presence) {
  rows_.push_back({.kind = OptionRow::Kind::kPositional,
                   .name = std::move(name),
                   .help = std::move(help),
                   .presence = presence,
                   .set = [&target](const std::string& text) { target = text; }});
}

void OptionTable::positionals(std::string name, std::string help, std::vector<std::string>& target, Presence presence,
                              std::vector<std::string> first_words) {
  rows_.push_back({.kind = OptionRow::Kind::kPositionals,
                   .name = std::move(name),
                   .help = std::move(help),
                   .presence = presence,
                   .choices = std::move(first_words),
                   .set = [&target](const std::string& text) { target.push_back(text); }});
}

void OptionTable::rest(std::string name, std::string help, std::vector<std::string>& target) {
  rows_.push_back({.kind = OptionRow::Kind::kRest,
                   .name = std::move(name),
                   .help = std::move(help),
                   .set = [&target](const std::string& text) { target.push_back(text); }});
}

}  // namespace yoke::cli
