// Tokens to syntax. Inside of the template reader: template.h is what others use. What the language has and we do not
// (include, block, import, …) is kUnsupported, named with its line.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/jinja/lexer.h"
#include "yoke/text/jinja/syntax.h"

namespace yoke::text::jinja {

// The tokens with a place in them, and how deep the parser is: a template of a million brackets must not use up the
// stack.
class TokenReader {
 public:
  TokenReader(std::vector<Token> tokens, std::string name) : tokens_(std::move(tokens)), name_(std::move(name)) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token take();
  int line() const { return peek().line; }
  bool looking_at(Token::Kind kind) const { return peek().kind == kind; }
  bool looking_at_operator(std::string_view text) const;
  bool looking_at_word(std::string_view word) const;
  bool take_operator(std::string_view text);
  bool take_word(std::string_view word);
  void expect_operator(std::string_view text);
  void expect_word(std::string_view word);
  std::string expect_name();
  void expect(Token::Kind kind, std::string_view what);
  // Whether a name stands among the tokens from `begin` to here.
  std::size_t place() const { return at_; }
  bool has_mentioned(std::string_view name, std::size_t begin) const;
  [[noreturn]] void refuse_here(std::string_view why) const { refuse(name_, line(), why); }
  const std::string& name() const { return name_; }

  // Counts levels of nesting while it lives. A chain such as a + b + c is a tree that leans left, as deep as it is
  // long, so that each link counts too.
  class Level {
   public:
    explicit Level(TokenReader& reader, int levels = 1) : reader_(reader) {
      while (levels_ < levels) deeper();
    }
    ~Level() { reader_.depth_ -= levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    void deeper();

   private:
    TokenReader& reader_;
    int levels_ = 0;
  };

 private:
  static constexpr int kMaxDepth = 250;
  std::vector<Token> tokens_;
  std::string name_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

ExpressionPtr parse_expression(TokenReader& reader);
// A value with its calls, indices, filters and tests, but without operators.
ExpressionPtr parse_operand(TokenReader& reader);
// Without `a if b else c` at its top: in `for x in items if x`, the if belongs to the loop.
ExpressionPtr parse_unconditional(TokenReader& reader);
// After a subject: |name(arguments), once or more often.
ExpressionPtr parse_filter_chain(TokenReader& reader, ExpressionPtr subject);
Block parse_template(TokenReader& reader);

template <class... Parts>
ExpressionPtr make_expression(Expression::Kind kind, int line, std::string name, Parts... parts) {
  auto made = std::make_unique<Expression>(Expression{.kind = kind, .line = line, .name = std::move(name)});
  (made->parts.push_back(std::move(parts)), ...);
  return made;
}

}  // namespace yoke::text::jinja
