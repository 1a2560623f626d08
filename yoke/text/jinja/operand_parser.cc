// What stands between operators: values, with calls, indices, filters and tests behind them.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "yoke/base/text.h"
#include "yoke/text/jinja/parser.h"

namespace yoke::text::jinja {
namespace {

using Kind = Expression::Kind;

ExpressionPtr literal(Value value, int line) {
  return std::make_unique<Expression>(Expression{.kind = Kind::kLiteral, .line = line, .literal = std::move(value)});
}

// *list or **map.
void parse_unpacked(TokenReader& reader, Expression& call) {
  const Token star = reader.take();
  ExpressionPtr unpacked = make_expression(Kind::kUnpacked, star.line, "", parse_expression(reader));
  if (star.text == "**") {
    call.named.emplace_back("**", std::move(unpacked));
  } else {
    call.parts.push_back(std::move(unpacked));
  }
}

// The arguments of a call after its opening parenthesis.
void parse_arguments(TokenReader& reader, Expression& call) {
  while (!reader.take_operator(")")) {
    const Token& next = reader.peek(1);
    const bool is_named =
        reader.looking_at(Token::Kind::kName) && next.kind == Token::Kind::kOperator && next.text == "=";
    if (reader.looking_at_operator("*") || reader.looking_at_operator("**")) {
      parse_unpacked(reader, call);
    } else if (is_named) {
      std::string name = reader.expect_name();
      reader.expect_operator("=");
      call.named.emplace_back(std::move(name), parse_expression(reader));
    } else {
      const bool after_list = call.parts.size() > 1 && call.parts.back()->kind == Kind::kUnpacked;
      if (!call.named.empty() || after_list) {
        reader.refuse_here("an argument without a name follows one with a name, or a '*'");
      }
      call.parts.push_back(parse_expression(reader));
    }
    if (!reader.looking_at_operator(")")) reader.expect_operator(",");
  }
}

// What stands in brackets after a value: an index, or a slice.
ExpressionPtr parse_subscript(TokenReader& reader, ExpressionPtr subject) {
  const int line = reader.line();
  std::array<ExpressionPtr, 3> bounds;
  std::size_t colons = 0;
  while (!reader.looking_at_operator("]")) {
    if (reader.take_operator(":")) {
      if (++colons > 2) reader.refuse_here("a slice has at most two colons");
    } else {
      if (bounds[colons]) reader.refuse_here("']' is missing");
      bounds[colons] = parse_expression(reader);
    }
  }
  reader.expect_operator("]");
  if (colons > 0) {
    return make_expression(Kind::kSlice, line, "", std::move(subject), std::move(bounds[0]), std::move(bounds[1]),
                           std::move(bounds[2]));
  }
  if (!bounds[0]) reader.refuse_here("an index is missing");
  return make_expression(Kind::kItem, line, "", std::move(subject), std::move(bounds[0]));
}

ExpressionPtr parse_call(TokenReader& reader, ExpressionPtr function) {
  auto call = std::make_unique<Expression>(Expression{.kind = Kind::kCall, .line = reader.line()});
  call->parts.push_back(std::move(function));
  reader.expect_operator("(");
  parse_arguments(reader, *call);
  return call;
}

ExpressionPtr parse_attribute(TokenReader& reader, ExpressionPtr subject) {
  const int line = reader.line();
  reader.expect_operator(".");
  if (reader.looking_at(Token::Kind::kInteger)) {  // a.0 is a[0]
    std::int64_t index = 0;
    const std::string digits = reader.take().text;
    std::from_chars(digits.data(), digits.data() + digits.size(), index);
    return make_expression(Kind::kItem, line, "", std::move(subject), literal(Value::integer(index), line));
  }
  return make_expression(Kind::kAttribute, line, reader.expect_name(), std::move(subject));
}

ExpressionPtr parse_postfix(TokenReader& reader, ExpressionPtr subject) {
  for (TokenReader::Level level(reader, 0);; level.deeper()) {
    if (reader.looking_at_operator(".")) {
      subject = parse_attribute(reader, std::move(subject));
    } else if (reader.take_operator("[")) {
      subject = parse_subscript(reader, std::move(subject));
    } else if (reader.looking_at_operator("(")) {
      subject = parse_call(reader, std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPtr parse_parenthesis(TokenReader& reader) {
  auto tuple = std::make_unique<Expression>(Expression{.kind = Kind::kTuple, .line = reader.line()});
  bool is_tuple = reader.looking_at_operator(")");
  while (!reader.take_operator(")")) {
    tuple->parts.push_back(parse_expression(reader));
    if (reader.looking_at_operator(")")) continue;
    reader.expect_operator(",");
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  return std::move(tuple->parts.front());
}

ExpressionPtr parse_list(TokenReader& reader) {
  auto list = std::make_unique<Expression>(Expression{.kind = Kind::kList, .line = reader.line()});
  while (!reader.take_operator("]")) {
    list->parts.push_back(parse_expression(reader));
    if (!reader.looking_at_operator("]")) reader.expect_operator(",");
  }
  return list;
}

ExpressionPtr parse_map(TokenReader& reader) {
  auto map = std::make_unique<Expression>(Expression{.kind = Kind::kMap, .line = reader.line()});
  while (!reader.take_operator("}")) {
    map->parts.push_back(parse_expression(reader));
    reader.expect_operator(":");
    map->parts.push_back(parse_expression(reader));
    if (!reader.looking_at_operator("}")) reader.expect_operator(",");
  }
  return map;
}

ExpressionPtr parse_word(TokenReader& reader) {
  const Token word = reader.take();
  if (word.text == "true" || word.text == "True") return literal(Value::boolean(true), word.line);
  if (word.text == "false" || word.text == "False") return literal(Value::boolean(false), word.line);
  if (word.text == "none" || word.text == "None") return literal(Value::none(), word.line);
  return make_expression(Kind::kName, word.line, word.text);
}

ExpressionPtr parse_number(TokenReader& reader) {
  const Token token = reader.take();
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == Token::Kind::kReal) {
    double value = 0;
    std::from_chars(token.text.data(), end, value);
    return literal(Value::real(value), token.line);
  }
  std::int64_t value = 0;
  if (std::from_chars(token.text.data(), end, value).ec != std::errc{}) reader.refuse_here("this number is too large");
  return literal(Value::integer(value), token.line);
}

ExpressionPtr parse_primary(TokenReader& reader) {
  const int line = reader.line();
  switch (reader.peek().kind) {
    case Token::Kind::kName:
      return parse_word(reader);
    case Token::Kind::kInteger:
    case Token::Kind::kReal:
      return parse_number(reader);
    case Token::Kind::kText: {
      std::string text;
      while (reader.looking_at(Token::Kind::kText)) text += reader.take().text;
      return literal(Value::text(std::move(text), Origin::kTemplate), line);
    }
    default:
      break;
  }
  if (reader.take_operator("(")) return parse_parenthesis(reader);
  if (reader.take_operator("[")) return parse_list(reader);
  if (reader.take_operator("{")) return parse_map(reader);
  reader.refuse_here(fmt::format("a value is missing before '{}'", printable(reader.peek().text, 30)));
}

// `is name`, `is not name`, `is name(argument)`, `is name argument`.
ExpressionPtr parse_test(TokenReader& reader, ExpressionPtr subject) {
  const int line = reader.line();
  const bool negated = reader.take_word("not");
  auto test = std::make_unique<Expression>(Expression{.kind = Kind::kTest, .line = line, .name = reader.expect_name()});
  test->parts.push_back(std::move(subject));
  const Token& next = reader.peek();
  const bool ends = reader.looking_at_word("else") || reader.looking_at_word("or") || reader.looking_at_word("and") ||
                    reader.looking_at_word("is") || reader.looking_at_word("if") || reader.looking_at_word("not") ||
                    reader.looking_at_word("in");
  const bool starts_value = next.kind == Token::Kind::kName || next.kind == Token::Kind::kText ||
                            next.kind == Token::Kind::kInteger || next.kind == Token::Kind::kReal ||
                            reader.looking_at_operator("[") || reader.looking_at_operator("{");
  if (reader.take_operator("(")) {
    parse_arguments(reader, *test);
  } else if (starts_value && !ends) {
    test->parts.push_back(parse_postfix(reader, parse_primary(reader)));
  }
  if (negated) return make_expression(Kind::kNot, line, "", ExpressionPtr(std::move(test)));
  return test;
}

ExpressionPtr parse_filter(TokenReader& reader, ExpressionPtr subject) {
  auto filter = std::make_unique<Expression>(Expression{.kind = Kind::kFilter, .line = reader.line()});
  filter->name = reader.expect_name();
  filter->parts.push_back(std::move(subject));
  if (reader.take_operator("(")) parse_arguments(reader, *filter);
  return filter;
}

ExpressionPtr parse_more_filters(TokenReader& reader, ExpressionPtr subject) {
  for (TokenReader::Level level(reader, 0); reader.take_operator("|"); level.deeper()) {
    subject = parse_filter(reader, std::move(subject));
  }
  return subject;
}

ExpressionPtr parse_filters(TokenReader& reader, ExpressionPtr subject) {
  for (TokenReader::Level level(reader, 0);; level.deeper()) {
    if (reader.take_operator("|")) {
      subject = parse_filter(reader, std::move(subject));
    } else if (reader.take_word("is")) {
      subject = parse_test(reader, std::move(subject));
    } else if (reader.looking_at_operator("(")) {
      subject = parse_call(reader, std::move(subject));
    } else if (reader.looking_at_operator(".") || reader.looking_at_operator("[")) {
      subject = parse_postfix(reader, std::move(subject));
    } else {
      return subject;
    }
  }
}

// A sign binds tighter than a filter: -1|abs is (-1)|abs.
ExpressionPtr parse_signed(TokenReader& reader) {
  const TokenReader::Level level(reader);
  const int line = reader.line();
  for (const std::string_view sign : {"-", "+"}) {
    if (reader.take_operator(sign)) return make_expression(Kind::kUnary, line, std::string(sign), parse_signed(reader));
  }
  return parse_postfix(reader, parse_primary(reader));
}

}  // namespace

ExpressionPtr parse_filter_chain(TokenReader& reader, ExpressionPtr subject) {
  reader.take_operator("|");
  return parse_more_filters(reader, parse_filter(reader, std::move(subject)));
}

ExpressionPtr parse_operand(TokenReader& reader) { return parse_filters(reader, parse_signed(reader)); }

}  // namespace yoke::text::jinja
