// Operators by Jinja's precedence: if-else, or, and, not, comparisons, + -, ~, * / // %, **. What they join is read in
// operand_parser.cc.
#include <initializer_list>

#include "yoke/text/jinja/parser.h"

namespace yoke::text::jinja {
namespace {

using Kind = Expression::Kind;

// Left-associative operators of one precedence.
template <class Parse>
ExpressionPtr parse_binary(TokenReader& reader, std::initializer_list<std::string_view> operators, Parse parse_part) {
  TokenReader::Level level(reader, 0);
  ExpressionPtr left = parse_part(reader);
  for (;; level.deeper()) {
    const std::string_view* found = nullptr;
    for (const std::string_view& candidate : operators) {
      if (reader.looking_at_operator(candidate)) found = &candidate;
    }
    if (!found) return left;
    const int line = reader.take().line;
    left = make_expression(Kind::kBinary, line, std::string(*found), std::move(left), parse_part(reader));
  }
}

ExpressionPtr parse_power(TokenReader& reader) { return parse_binary(reader, {"**"}, parse_operand); }
ExpressionPtr parse_product(TokenReader& reader) { return parse_binary(reader, {"*", "/", "//", "%"}, parse_power); }
ExpressionPtr parse_concatenation(TokenReader& reader) { return parse_binary(reader, {"~"}, parse_product); }
ExpressionPtr parse_sum(TokenReader& reader) { return parse_binary(reader, {"+", "-"}, parse_concatenation); }

std::string take_comparison(TokenReader& reader) {
  for (const std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"}) {
    if (reader.take_operator(candidate)) return std::string(candidate);
  }
  if (reader.take_word("in")) return "in";
  const Token& next = reader.peek(1);
  if (reader.looking_at_word("not") && next.kind == Token::Kind::kName && next.text == "in") {
    reader.take();
    reader.take();
    return "not in";
  }
  return {};
}

ExpressionPtr parse_comparison(TokenReader& reader) {
  ExpressionPtr first = parse_sum(reader);
  std::string comparison = take_comparison(reader);
  if (comparison.empty()) return first;
  auto chain = std::make_unique<Expression>(Expression{.kind = Kind::kCompare, .line = first->line});
  chain->parts.push_back(std::move(first));
  while (!comparison.empty()) {
    chain->operators.push_back(std::move(comparison));
    chain->parts.push_back(parse_sum(reader));
    comparison = take_comparison(reader);
  }
  return chain;
}

ExpressionPtr parse_not(TokenReader& reader) {
  const TokenReader::Level level(reader);
  const int line = reader.line();
  if (reader.take_word("not")) return make_expression(Kind::kNot, line, "", parse_not(reader));
  return parse_comparison(reader);
}

template <class Parse>
ExpressionPtr parse_logical(TokenReader& reader, Kind kind, std::string_view word, Parse parse_part) {
  TokenReader::Level level(reader, 0);
  ExpressionPtr left = parse_part(reader);
  for (; reader.looking_at_word(word); level.deeper()) {
    const int line = reader.take().line;
    left = make_expression(kind, line, "", std::move(left), parse_part(reader));
  }
  return left;
}

ExpressionPtr parse_and(TokenReader& reader) { return parse_logical(reader, Kind::kAnd, "and", parse_not); }
ExpressionPtr parse_or(TokenReader& reader) { return parse_logical(reader, Kind::kOr, "or", parse_and); }

}  // namespace

ExpressionPtr parse_unconditional(TokenReader& reader) { return parse_or(reader); }

ExpressionPtr parse_expression(TokenReader& reader) {
  const TokenReader::Level level(reader);
  ExpressionPtr value = parse_or(reader);
  const int line = reader.line();
  if (!reader.take_word("if")) return value;
  ExpressionPtr condition = parse_or(reader);
  ExpressionPtr otherwise = reader.take_word("else") ? parse_expression(reader) : nullptr;
  return make_expression(Kind::kConditional, line, "", std::move(condition), std::move(value), std::move(otherwise));
}

}  // namespace yoke::text::jinja
