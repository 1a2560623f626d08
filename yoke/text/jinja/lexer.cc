#include "yoke/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/text/unicode.h"

namespace yoke::text::jinja {
namespace {

constexpr std::string_view kBlank = " \t\n\r\f\v";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string with_plain_newlines(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      text += '\n';
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(with_plain_newlines(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = find_tag();
      std::string_view data = view().substr(at_, tag - at_);
      if (tag == source_.size()) {
        add_data(data);
        break;
      }
      read_tag(data, tag);
    }
    add(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view view() const { return source_; }
  bool looking_at(std::string_view text) const { return view().substr(at_).starts_with(text); }
  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t count) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(count), '\n'));
    at_ += count;
  }
  void skip_blanks() { advance(std::min(view().find_first_not_of(kBlank, at_), source_.size()) - at_); }

  void add_data(std::string_view data) {
    if (!data.empty()) add(Token::Kind::kData, std::string(data));
  }

  std::size_t find_tag() const {
    for (std::size_t i = view().find('{', at_); i != std::string_view::npos; i = view().find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return source_.size();
  }

  // The text before a tag, as the tag wants it: {%- takes all blanks before it, {% those of its own line.
  std::string_view before_tag(std::string_view data, char kind, char sign) const {
    if (sign == '-') {
      const std::size_t last = data.find_last_not_of(kBlank);
      return data.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    if (sign == '+' || kind == '{') return data;
    const std::size_t newline = data.rfind('\n');
    const bool line_starts_before = at_ == 0 || source_[at_ - 1] == '\n';
    if (newline == std::string_view::npos && !line_starts_before) return data;
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    return data.find_first_not_of(" \t\f\v", line) == std::string_view::npos ? data.substr(0, line) : data;
  }

  void read_tag(std::string_view data, std::size_t tag) {
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const std::string_view kept = before_tag(data, kind, sign);
    add_data(kept);
    advance(tag - at_ + 2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (kind == '#') {
      read_comment();
    } else if (kind == '%' && looking_at_raw()) {
      read_raw();
    } else {
      add(kind == '{' ? Token::Kind::kPrintBegin : Token::Kind::kBlockBegin, "");
      read_inside(kind == '{' ? "}}" : "%}");
      add(kind == '{' ? Token::Kind::kPrintEnd : Token::Kind::kBlockEnd, "");
      finish_tag(kind == '{' ? "}}" : "%}");
    }
  }

  // Passes the end of a tag: -%} takes the blanks after it, %} and #} one newline.
  void finish_tag(std::string_view end) {
    const bool strips = looking_at("-");
    const bool keeps = looking_at("+");
    advance(end.size() + (strips || keeps ? 1 : 0));
    if (strips) {
      skip_blanks();
    } else if (!keeps && end != "}}" && looking_at("\n")) {
      advance(1);
    }
  }

  void read_comment() {
    const std::size_t end = view().find("#}", at_);
    if (end == std::string_view::npos) refuse(name_, line_, "the comment is not closed");
    const bool signed_end = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    advance(end - at_ - (signed_end ? 1 : 0));
    finish_tag("#}");
  }

  bool looking_at_raw() const {
    const std::size_t word = view().find_first_not_of(kBlank, at_);
    if (word == std::string_view::npos || !view().substr(word).starts_with("raw")) return false;
    const std::size_t after = view().find_first_not_of(kBlank, word + 3);
    return after != std::string_view::npos && (view().substr(after, 2) == "%}" || view().substr(after, 3) == "-%}");
  }

  void read_raw() {
    skip_blanks();
    advance(3);
    skip_blanks();
    finish_tag("%}");
    for (std::size_t tag = view().find("{%", at_); tag != std::string_view::npos; tag = view().find("{%", tag + 2)) {
      const bool has_sign = tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+');
      const std::size_t word = view().find_first_not_of(kBlank, tag + (has_sign ? 3 : 2));
      if (word == std::string_view::npos || !view().substr(word).starts_with("endraw")) continue;
      add_data(before_tag(view().substr(at_, tag - at_), '%', has_sign ? source_[tag + 2] : '\0'));
      advance(word + 6 - at_);
      skip_blanks();
      if (!looking_at("%}") && !looking_at("-%}")) refuse(name_, line_, "'%}' is missing after 'endraw'");
      return finish_tag("%}");
    }
    refuse(name_, line_, "'raw' is not closed by 'endraw'");
  }

  void read_inside(std::string_view end) {
    int open = 0;  // of brackets: a }} inside of {{ {'a': {}} }} does not end the tag
    for (;;) {
      skip_blanks();
      if (at_ >= source_.size()) refuse(name_, line_, fmt::format("'{}' is missing", end));
      const bool signed_end = (looking_at("-") || looking_at("+")) && view().substr(at_ + 1).starts_with(end);
      if (open == 0 && (looking_at(end) || signed_end)) return;
      const char c = source_[at_];
      if (c == '\'' || c == '"') {
        read_text();
      } else if (is_digit(c)) {
        read_number();
      } else if (is_name_start(c)) {
        std::size_t length = 1;
        while (at_ + length < source_.size() &&
               (is_name_start(source_[at_ + length]) || is_digit(source_[at_ + length])))
          ++length;
        add(Token::Kind::kName, source_.substr(at_, length));
        advance(length);
      } else {
        if (c == '(' || c == '[' || c == '{') ++open;
        if (c == ')' || c == ']' || c == '}') open = std::max(0, open - 1);
        read_operator();
      }
    }
  }

  void read_operator() {
    constexpr std::array<std::string_view, 24> kOperators = {"//", "**", "==", "!=", "<=", ">=", "+", "-",
                                                             "*",  "/",  "%",  "~",  "[",  "]",  "(", ")",
                                                             "{",  "}",  "<",  ">",  "=",  ".",  ":", "|"};
    for (const std::string_view candidate : kOperators) {
      if (looking_at(candidate)) {
        add(Token::Kind::kOperator, std::string(candidate));
        return advance(candidate.size());
      }
    }
    if (!looking_at(","))
      refuse(name_, line_, fmt::format("'{}' makes no sense here", printable(view().substr(at_, 1))));
    add(Token::Kind::kOperator, ",");
    advance(1);
  }

  void read_number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && is_digit(source_[end])) ++end;
    };
    digits();
    Token::Kind kind = Token::Kind::kInteger;
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == Token::Kind::kOperator &&
                           tokens_.back().text == "." && source_[at_ - 1] == '.';  // matrix.0.1 has two indices
    if (!after_dot && end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      kind = Token::Kind::kReal;
      ++end;
      digits();
    }
    if (const std::size_t exponent = after_dot ? 0 : exponent_length(end); exponent != 0) {
      kind = Token::Kind::kReal;
      end += exponent;
      digits();
    }
    add(kind, source_.substr(at_, end - at_));
    advance(end - at_);
  }

  // Of "e", "e-" or "e+" before a digit; else 0.
  std::size_t exponent_length(std::size_t at) const {
    const std::string_view rest = std::string_view(source_).substr(std::min(at, source_.size()));
    if (rest.empty() || (rest[0] != 'e' && rest[0] != 'E')) return 0;
    const std::size_t sign = rest.size() > 1 && (rest[1] == '-' || rest[1] == '+') ? 1 : 0;
    return rest.size() > 1 + sign && is_digit(rest[1 + sign]) ? 1 + sign : 0;
  }

  void read_text() {
    const char quote = source_[at_];
    const int line = line_;
    std::string value;
    advance(1);
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
        read_escape(value);
      } else {
        value += source_[at_];
        advance(1);
      }
    }
    if (at_ >= source_.size()) refuse(name_, line, "the text is not closed");
    advance(1);
    if (find_invalid_utf8(value)) refuse(name_, line, "the text is not UTF-8");
    tokens_.push_back({Token::Kind::kText, std::move(value), line});
  }

  // As Python: what is no escape stays as it is, with its backslash.
  void read_escape(std::string& value) {
    constexpr std::string_view kNames = "\\'\"abfnrtv\n";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const char name = source_[at_ + 1];
    if (const std::size_t known = kNames.find(name); known != std::string_view::npos) {
      if (known < kValues.size()) value += kValues[known];  // a newline after the backslash is nothing
      return advance(2);
    }
    const std::size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0;
    const char* const begin = source_.data() + at_ + 2;
    std::uint32_t code = 0;
    const bool has_code = digits != 0 && at_ + 2 + digits <= source_.size() &&
                          std::from_chars(begin, begin + digits, code, 16).ptr == begin + digits && code <= 0x10FFFF &&
                          (code < 0xD800 || code > 0xDFFF);
    if (digits != 0 && !has_code) refuse(name_, line_, fmt::format("'\\{}' needs {} hexadecimal digits", name, digits));
    if (has_code) {
      append_utf8(value, code);
    } else {
      value += source_.substr(at_, 2);
    }
    advance(2 + digits);
  }

  std::string source_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

void refuse(const std::string& name, int line, std::string_view why) {
  throw Error(ErrorCode::kInvalid, fmt::format("{}, line {}: {}", name, line, why));
}

std::vector<Token> read_tokens(std::string_view source, const std::string& name) { return Lexer(source, name).run(); }

}  // namespace yoke::text::jinja
