#include "yoke/text/json_pattern.h"

#include <fmt/format.h>

#include <bitset>
#include <optional>
#include <string>
#include <utility>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::text {
namespace {

using At = GrammarBuilder::At;

constexpr std::int64_t kMaxRepeats = 1000;

// Which characters a class has: each of ASCII, and all others or none.
struct CharClass {
  std::bitset<128> ascii;
  bool others = false;
  void invert() {
    ascii.flip();
    others = !others;
  }
};

class PatternReader {
 public:
  PatternReader(GrammarBuilder& builder, std::string_view pattern, const std::function<At(At)>& any_character)
      : builder_(builder), pattern_(pattern), rest_(pattern), any_character_(any_character) {}

  At read(At from) {
    const bool is_begin = take('^');
    bool is_end = rest_.ends_with('$') && !rest_.ends_with("\\$");
    if (is_end) rest_.remove_suffix(1);
    const auto anything = [&](At at) { return builder_.repeat(at, 0, -1, any_character_); };
    if (!is_begin) from = anything(from);
    from = alternatives(from, 0);
    if (!rest_.empty()) refuse("has a ) too many");
    return is_end ? from : anything(from);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(ErrorCode::kUnsupported, fmt::format("the pattern '{}' {}", printable(pattern_, 100), why),
                "use literals, classes, groups, |, *, +, ? and {m,n}");
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  char next() {
    if (rest_.empty()) refuse("ends too early");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  At alternatives(At from, int depth) {
    if (depth > 32) refuse("is nested too deep");
    const At end = builder_.node();
    do {
      At at = builder_.node();
      builder_.join(from, at);
      while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') at = repeated(at, depth);
      builder_.join(at, end);
    } while (take('|'));
    return end;
  }

  // An atom with what follows it. It is read again for each repetition.
  At repeated(At from, int depth) {
    const std::string_view begin = rest_;
    skip_atom(depth);
    const std::string_view atom = begin.substr(0, begin.size() - rest_.size());
    std::int64_t least = 1, most = 1;
    if (take('*')) {
      least = 0, most = -1;
    } else if (take('+')) {
      most = -1;
    } else if (take('?')) {
      least = 0;
    } else if (take('{')) {
      least = count();
      most = least;
      if (take(',')) most = !rest_.empty() && rest_.front() == '}' ? -1 : count();
      if (!take('}') || (most >= 0 && most < least)) refuse("has a repetition that is none");
    }
    take('?');  // lazy and greedy match the same texts
    const std::string_view after = rest_;
    At at = builder_.repeat(from, least, most, [&](At one) {
      rest_ = atom;
      return this->atom(one, depth);
    });
    rest_ = after;
    return at;
  }

  std::int64_t count() {
    std::int64_t value = 0;
    bool is_number = false;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      value = value * 10 + (next() - '0');
      is_number = true;
      if (value > kMaxRepeats) refuse("repeats too often");
    }
    if (!is_number) refuse("has a repetition that is none");
    return value;
  }

  // Moves behind an atom: its text is what was passed.
  void skip_atom(int depth) {
    const char c = next();
    if (c == '\\') {
      next();
    } else if (c == '[') {
      take('^');
      take(']');
      while (true) {
        const char inner = next();
        if (inner == '\\') next();
        if (inner == ']') break;
      }
    } else if (c == '(') {
      if (depth > 32) refuse("is nested too deep");
      for (int open = 1; open > 0;) {
        const char inner = next();
        if (inner == '\\') next();
        if (inner == '[') {
          rest_ = std::string_view(rest_.data() - 1, rest_.size() + 1);
          skip_atom(depth + 1);
        }
        open += inner == '(' ? 1 : inner == ')' ? -1 : 0;
      }
    } else if ((static_cast<unsigned char>(c) & 0x80) != 0) {
      while (!rest_.empty() && (static_cast<unsigned char>(rest_.front()) & 0xC0) == 0x80) rest_.remove_prefix(1);
    }
  }

  At atom(At from, int depth) {
    const char c = next();
    switch (c) {
      case '(':
        if (take('?') && !take(':')) refuse("has a group of an unknown kind");
        from = alternatives(from, depth + 1);
        if (!take(')')) refuse("has a ( too many");
        return from;
      case '[':
        return one_of(from, read_class());
      case '.':
        return one_of(from, any_but_line_ends());
      case '\\':
        return escaped(from);
      case '*':
      case '+':
      case '?':
      case '{':
      case '^':
      case '$':
        refuse(fmt::format("has a '{}' at a place that we do not support", c));
      default: {
        std::string text(1, c);
        while (!rest_.empty() && (static_cast<unsigned char>(rest_.front()) & 0xC0) == 0x80) text += next();
        return character(from, text);
      }
    }
  }

  static CharClass any_but_line_ends() {
    CharClass all;
    all.invert();
    all.ascii.reset('\n');
    all.ascii.reset('\r');
    return all;
  }

  std::optional<CharClass> named_class(char name) const {
    CharClass found;
    const auto add = [&](char low, char high) {
      for (char c = low; c <= high; ++c) found.ascii.set(static_cast<std::size_t>(c));
    };
    switch (name) {
      case 'd':
      case 'D':
        add('0', '9');
        break;
      case 'w':
      case 'W':
        add('0', '9'), add('a', 'z'), add('A', 'Z'), add('_', '_');
        break;
      case 's':
      case 'S':
        add('\t', '\r'), add(' ', ' ');
        break;
      default:
        return std::nullopt;
    }
    if (name >= 'A' && name <= 'Z') found.invert();
    return found;
  }

  char escaped_char(char c) const {
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c == 'r') return '\r';
    if (c == 'f') return '\f';
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_word) refuse(fmt::format("has \\{}, which we do not support", c));
    return c;
  }

  At escaped(At from) {
    const char c = next();
    if (const auto named = named_class(c)) return one_of(from, *named);
    return character(from, std::string(1, escaped_char(c)));
  }

  CharClass read_class() {
    CharClass all;
    const bool inverts = take('^');
    bool is_first = true;
    while (std::exchange(is_first, false) || rest_.empty() || rest_.front() != ']') {
      const char c = next();
      if ((static_cast<unsigned char>(c) & 0x80) != 0) refuse("has a class of characters beyond ASCII");
      if (c == '\\' && !rest_.empty()) {
        if (const auto named = named_class(rest_.front())) {
          next();
          all.ascii |= named->ascii;
          all.others = all.others || named->others;
          continue;
        }
      }
      const char low = c == '\\' ? escaped_char(next()) : c;
      char high = low;
      if (rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']') {
        next();
        high = next();
        if (high == '\\') high = escaped_char(next());
      }
      if (high < low) refuse("has a class whose range runs backwards");
      for (int one = low; one <= high; ++one) all.ascii.set(static_cast<std::size_t>(one));
    }
    next();
    if (inverts) all.invert();
    return all;
  }

  At one_of(At from, const CharClass& allowed) {
    const At end = builder_.node();
    const auto has = [&](int c) { return c < 128 && allowed.ascii.test(static_cast<std::size_t>(c)); };
    const auto is_plain = [&](int c) { return has(c) && c >= 0x20 && c != '"' && c != '\\'; };
    for (int c = 0; c < 128; ++c) {
      if (!has(c)) continue;
      if (!is_plain(c)) {
        builder_.join(character(from, std::string(1, static_cast<char>(c))), end);
        continue;
      }
      const int low = c;
      while (is_plain(c + 1)) ++c;
      builder_.range(from, end, low, c);
    }
    if (allowed.others) builder_.join(builder_.any_text_byte(from), end);
    return end;
  }

  // As JSON writes it in a string.
  At character(At from, const std::string& text) {
    const auto c = static_cast<unsigned char>(text.front());
    if (c == '"' || c == '\\') return builder_.literal(from, "\\" + text);
    if (c >= 0x20) return builder_.literal(from, text);
    for (const auto& [control, name] : {std::pair{'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}) {
      if (c == static_cast<unsigned char>(control)) return builder_.literal(from, fmt::format("\\{}", name));
    }
    return builder_.literal(from, fmt::format("\\u{:04x}", c));
  }

  GrammarBuilder& builder_;
  const std::string_view pattern_;
  std::string_view rest_;
  const std::function<At(At)>& any_character_;
};

}  // namespace

At add_json_pattern(GrammarBuilder& builder, At from, std::string_view pattern,
                    const std::function<At(At)>& any_character) {
  return PatternReader(builder, pattern, any_character).read(from);
}

}  // namespace yoke::text
