// The methods of texts and maps, as Python has them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "yoke/base/text.h"
#include "yoke/text/jinja/builtins.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

enum class Ends { kBoth, kStart, kEnd };

// Without the given characters at the ends, or without white space.
Value strip(Interpreter& interpreter, const Arguments& arguments, Ends ends) {
  const MarkedText& text = text_subject(interpreter, arguments);
  const Value* given = arguments.find(0, "chars");
  std::string_view kept = text.text();
  if (!given || given->is_none()) {
    interpreter.spend(1 + text.size() / 8);
    if (ends != Ends::kEnd) kept = trim_start(kept);
    if (ends != Ends::kStart) kept = trim_end(kept);
  } else {
    const std::string& unwanted = text_argument(interpreter, arguments, 0, "chars").text();
    const auto is_unwanted = [&](std::string_view character) {
      interpreter.spend(1 + unwanted.size() / 16);
      return unwanted.find(character) != std::string::npos;
    };
    while (ends != Ends::kEnd && !kept.empty() && is_unwanted(kept.substr(0, utf8_length(kept)))) {
      kept.remove_prefix(utf8_length(kept));
    }
    while (ends != Ends::kStart && !kept.empty()) {
      std::size_t start = kept.size() - 1;
      while (start > 0 && (static_cast<unsigned char>(kept[start]) & 0xC0U) == 0x80U) --start;
      if (!is_unwanted(kept.substr(start))) break;
      kept.remove_suffix(kept.size() - start);
    }
  }
  return interpreter.text(text.slice(static_cast<std::size_t>(kept.data() - text.text().data()), kept.size()));
}

Value strip_both(Interpreter& i, const Arguments& a) { return strip(i, a, Ends::kBoth); }
Value strip_start(Interpreter& i, const Arguments& a) { return strip(i, a, Ends::kStart); }
Value strip_end(Interpreter& i, const Arguments& a) { return strip(i, a, Ends::kEnd); }

// At white space: runs of it separate, and none is at the ends. After `most` splits the rest stays as it is.
Value split_words(Interpreter& interpreter, const MarkedText& text, std::int64_t most, Ends from) {
  interpreter.spend(1 + text.size() / 8);
  const std::string_view all = text.text();
  std::vector<std::pair<std::size_t, std::size_t>> words;  // begin and end
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= all.size();) {
    const bool ends = at == all.size() || is_white_space(code_point(all.substr(at)));
    const std::size_t next = at == all.size() ? at + 1 : at + utf8_length(all.substr(at));
    if (ends && at > begin) {
      interpreter.spend(Budget::kItemSteps);
      words.emplace_back(begin, at);
    }
    if (ends) begin = next;
    at = next;
  }
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(most, 0));
  if (most >= 0 && wanted < words.size()) {
    const auto splits = static_cast<std::ptrdiff_t>(wanted);
    if (from == Ends::kStart) {
      words[wanted].second = all.size();
      words.erase(words.begin() + splits + 1, words.end());
    } else {
      words[words.size() - 1 - wanted].first = 0;
      words.erase(words.begin(), words.end() - splits - 1);
    }
  }
  std::vector<Value> parts;
  for (const auto& [first, last] : words) parts.push_back(interpreter.text(text.slice(first, last - first)));
  return interpreter.list(std::move(parts));
}

std::vector<std::size_t> find_all(const std::string& text, const std::string& part) {
  std::vector<std::size_t> places;
  for (std::size_t at = find_text(text, part); at != std::string::npos; at = find_text(text, part, at + part.size()))
    places.push_back(at);
  return places;
}

Value split_at(Interpreter& interpreter, const Arguments& arguments, Ends from) {
  const MarkedText& text = text_subject(interpreter, arguments);
  interpreter.spend(text.size() / 16);
  const Value* given = arguments.find(0, "sep");
  const std::int64_t most = integer_argument(interpreter, arguments, 1, "maxsplit", -1);
  if (!given || given->is_none()) return split_words(interpreter, text, most, from);
  const std::string& separator = text_argument(interpreter, arguments, 0, "sep").text();
  if (separator.empty()) interpreter.refuse("a text cannot be split at nothing");
  std::vector<std::size_t> places = find_all(text.text(), separator);
  if (most >= 0 && static_cast<std::size_t>(most) < places.size()) {
    const auto wanted = static_cast<std::ptrdiff_t>(most);
    if (from == Ends::kStart) places.erase(places.begin() + wanted, places.end());
    if (from == Ends::kEnd) places.erase(places.begin(), places.end() - wanted);
  }
  std::vector<Value> parts;
  std::size_t begin = 0;
  for (const std::size_t at : places) {
    parts.push_back(interpreter.text(text.slice(begin, at - begin)));
    begin = at + separator.size();
  }
  parts.push_back(interpreter.text(text.slice(begin, text.size())));
  return interpreter.list(std::move(parts));
}

Value split_left(Interpreter& i, const Arguments& a) { return split_at(i, a, Ends::kStart); }
Value split_right(Interpreter& i, const Arguments& a) { return split_at(i, a, Ends::kEnd); }

Value split_lines(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText& text = text_subject(interpreter, arguments);
  const Value* keep = arguments.find(0, "keepends");
  std::vector<Value> lines;
  for (const TextLine& line : lines_of(interpreter, text)) {
    const std::size_t end = keep && keep->truth() ? line.next : line.end;
    lines.push_back(interpreter.text(text.slice(line.begin, end - line.begin)));
  }
  return interpreter.list(std::move(lines));
}

// One text, or any of a list.
bool any_text(Interpreter& interpreter, const Arguments& arguments,
              bool (*matches)(std::string_view, std::string_view)) {
  const std::string& text = text_subject(interpreter, arguments).text();
  if (const Value* given = arguments.find(0, "prefix"); given && given->as_list()) {
    return std::any_of(given->as_list()->items.begin(), given->as_list()->items.end(), [&](const Value& item) {
      interpreter.spend(1 + (item.as_text() ? item.as_text()->size() / 16 : 0));
      return item.as_text() && matches(text, item.as_text()->text());
    });
  }
  const std::string& part = text_argument(interpreter, arguments, 0, "prefix").text();
  interpreter.spend(1 + std::min(text.size(), part.size()) / 16);
  return matches(text, part);
}

Value starts_with(Interpreter& interpreter, const Arguments& arguments) {
  return Value::boolean(
      any_text(interpreter, arguments, [](std::string_view a, std::string_view b) { return a.starts_with(b); }));
}
Value ends_with(Interpreter& interpreter, const Arguments& arguments) {
  return Value::boolean(
      any_text(interpreter, arguments, [](std::string_view a, std::string_view b) { return a.ends_with(b); }));
}

Value remove_prefix(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText& text = text_subject(interpreter, arguments);
  const std::string& prefix = text_argument(interpreter, arguments, 0, "prefix").text();
  interpreter.spend(1 + std::min(text.size(), prefix.size()) / 16);
  return interpreter.text(text.text().starts_with(prefix) ? text.slice(prefix.size(), text.size()) : text);
}
Value remove_suffix(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText& text = text_subject(interpreter, arguments);
  const std::string& suffix = text_argument(interpreter, arguments, 0, "suffix").text();
  interpreter.spend(1 + std::min(text.size(), suffix.size()) / 16);
  return interpreter.text(text.text().ends_with(suffix) ? text.slice(0, text.size() - suffix.size()) : text);
}

Value find_in(Interpreter& interpreter, const Arguments& arguments) {
  const std::string& text = text_subject(interpreter, arguments).text();
  interpreter.spend(text.size() / 16);
  const std::size_t at = find_text(text, text_argument(interpreter, arguments, 0, "sub").text());
  if (at == std::string::npos) return Value::integer(-1);
  const std::string_view before = std::string_view(text).substr(0, at);
  return Value::integer(std::count_if(before.begin(), before.end(),
                                      [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

Value count_of(Interpreter& interpreter, const Arguments& arguments) {
  const std::string& part = text_argument(interpreter, arguments, 0, "sub").text();
  if (part.empty()) interpreter.refuse("nothing cannot be counted");
  const std::string& text = text_subject(interpreter, arguments).text();
  interpreter.spend(text.size() / 16);
  return Value::integer(static_cast<std::int64_t>(find_all(text, part).size()));
}

// Words begin after an apostrophe too; the filter of the same name has its own idea.
Value capitalize_words(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText& text = text_subject(interpreter, arguments);
  interpreter.spend(text.size() / 2);
  std::string changed;
  bool in_word = false;
  for (std::string_view rest = text.text(); !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    const std::string_view character = rest.substr(0, utf8_length(rest));
    changed += in_word ? lower_case(character) : upper_case(character);
    in_word = is_word(code_point(character));
  }
  return interpreter.text({std::move(changed), text.weakest()});
}

const Value* positional_argument(const Arguments& arguments, std::size_t index) {
  return index < arguments.positional.size() ? &arguments.positional[index] : nullptr;
}
const Value* named_argument(Interpreter& interpreter, const Arguments& arguments, std::string_view name) {
  interpreter.spend(arguments.named.size() / 8);
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& given) { return given.first == name; });
  return found == arguments.named.end() ? nullptr : &found->second;
}

// 'Budget {}: {left}'.format(n, left=m), without conversions and widths.
Value fill_fields(Interpreter& interpreter, const Arguments& arguments) {
  const MarkedText& text = text_subject(interpreter, arguments);
  MarkedText out;
  std::size_t next = 0;  // of the fields without a name
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text.text()).substr(at);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      out.append(text.slice(at, 1));
      at += 2;
    } else if (rest.front() == '{') {
      const std::size_t end = rest.find('}');
      if (end == std::string_view::npos) interpreter.refuse("a '{' of format() has no '}'");
      const std::string_view name = rest.substr(1, end - 1);
      std::size_t index = 0;
      const bool is_index = std::from_chars(name.data(), name.data() + name.size(), index).ptr == name.end();
      if (name.empty()) index = next++;
      const Value* value = name.empty() || is_index ? positional_argument(arguments, index)
                                                    : named_argument(interpreter, arguments, name);
      if (!value) interpreter.refuse(fmt::format("format() has nothing for '{{{}}}'", printable(name, 40)));
      out.append(print(*value, interpreter.budget()));
      at += end + 1;
    } else {
      const std::size_t end = std::min(text.text().find_first_of("{}", at + 1), text.size());
      out.append(text.slice(at, end - at));
      at = end;
    }
    interpreter.spend(1);
    interpreter.check_size(out.size());
  }
  return interpreter.text(std::move(out));
}

// A filter of the same name does the same to the same subject.
template <char const* kName>
Value as_filter(Interpreter& interpreter, const Arguments& arguments) {
  return interpreter.filter(kName, arguments);
}
constexpr char kUpper[] = "upper";
constexpr char kLower[] = "lower";
constexpr char kCapitalize[] = "capitalize";
constexpr char kReplace[] = "replace";

Value join_items(Interpreter& interpreter, const Arguments& arguments) {
  const Value* items = arguments.find(0, "items");
  if (!items) interpreter.refuse("'join' needs a list");
  return interpreter.filter("join", {.subject = *items, .positional = {arguments.subject}});
}

template <bool kKeys, bool kValues>
Value map_entries(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<Value> all;
  for (const auto& [key, value] : arguments.subject.as_map()->entries) {
    if (kKeys && kValues) {
      all.push_back(interpreter.list({key, value}, ListKind::kTuple));
    } else {
      all.push_back(kKeys ? key : value);
    }
  }
  return interpreter.list(std::move(all));
}

Value get_entry(Interpreter& interpreter, const Arguments& arguments) {
  const Map& map = *arguments.subject.as_map();
  interpreter.spend(map.entries.size() / 8);
  const Value* key = arguments.find(0, "key");
  const Value* found = key ? map.find(*key) : nullptr;
  if (found) return *found;
  const Value* otherwise = arguments.find(1, "default");
  return otherwise ? *otherwise : Value::none();
}

}  // namespace

Builtin find_text_method(std::string_view name) {
  static const std::map<std::string_view, Builtin> kMethods = {
      {"strip", strip_both},
      {"lstrip", strip_start},
      {"rstrip", strip_end},
      {"split", split_left},
      {"rsplit", split_right},
      {"splitlines", split_lines},
      {"startswith", starts_with},
      {"endswith", ends_with},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"find", find_in},
      {"count", count_of},
      {"join", join_items},
      {"upper", as_filter<kUpper>},
      {"lower", as_filter<kLower>},
      {"title", capitalize_words},
      {"capitalize", as_filter<kCapitalize>},
      {"replace", as_filter<kReplace>},
      {"format", fill_fields},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

Builtin find_map_method(std::string_view name) {
  static const std::map<std::string_view, Builtin> kMethods = {
      {"items", map_entries<true, true>},
      {"keys", map_entries<true, false>},
      {"values", map_entries<false, true>},
      {"get", get_entry},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace yoke::text::jinja
