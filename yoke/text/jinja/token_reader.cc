#include <fmt/format.h>

#include "yoke/base/text.h"
#include "yoke/text/jinja/parser.h"

namespace yoke::text::jinja {

Token TokenReader::take() {
  Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::looking_at_operator(std::string_view text) const {
  return peek().kind == Token::Kind::kOperator && peek().text == text;
}
bool TokenReader::looking_at_word(std::string_view word) const {
  return peek().kind == Token::Kind::kName && peek().text == word;
}

bool TokenReader::take_operator(std::string_view text) {
  if (!looking_at_operator(text)) return false;
  take();
  return true;
}
bool TokenReader::take_word(std::string_view word) {
  if (!looking_at_word(word)) return false;
  take();
  return true;
}

void TokenReader::expect_operator(std::string_view text) {
  if (!take_operator(text)) refuse_here(fmt::format("'{}' is missing before '{}'", text, printable(peek().text, 30)));
}
void TokenReader::expect_word(std::string_view word) {
  if (!take_word(word)) refuse_here(fmt::format("'{}' is missing before '{}'", word, printable(peek().text, 30)));
}
std::string TokenReader::expect_name() {
  if (!looking_at(Token::Kind::kName))
    refuse_here(fmt::format("a name is missing before '{}'", printable(peek().text, 30)));
  return take().text;
}
void TokenReader::expect(Token::Kind kind, std::string_view what) {
  if (!looking_at(kind)) refuse_here(fmt::format("'{}' is missing before '{}'", what, printable(peek().text, 30)));
  take();
}

bool TokenReader::has_mentioned(std::string_view name, std::size_t begin) const {
  return std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                     tokens_.begin() + static_cast<std::ptrdiff_t>(at_),
                     [&](const Token& token) { return token.kind == Token::Kind::kName && token.text == name; });
}

void TokenReader::Level::deeper() {
  if (reader_.depth_ >= kMaxDepth) reader_.refuse_here(fmt::format("nested more than {} deep", kMaxDepth));
  ++reader_.depth_;
  ++levels_;
}

}  // namespace yoke::text::jinja
