#include "yoke/text/jinja/parser.h"

#include <fmt/format.h>

#include <initializer_list>

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::text::jinja {
namespace {

using StatementKind = Statement::Kind;

Statement parse_block_statement(TokenReader& reader);

void end_tag(TokenReader& reader) { reader.expect(Token::Kind::kBlockEnd, "%}"); }

// Statements up to a tag with one of these words, whose opening is passed over but whose word is left to read.
Block parse_until(TokenReader& reader, std::initializer_list<std::string_view> words) {
  const TokenReader::Level level(reader);
  Block block;
  for (;;) {
    const Token token = reader.peek();
    if (token.kind == Token::Kind::kEnd) {
      if (words.size() == 0) return block;
      reader.refuse_here(fmt::format("'{}' is missing", *(words.end() - 1)));
    }
    reader.take();
    if (token.kind == Token::Kind::kData) {
      block.push_back({.kind = StatementKind::kText, .line = token.line, .text = token.text});
    } else if (token.kind == Token::Kind::kPrintBegin) {
      block.push_back({.kind = StatementKind::kPrint, .line = token.line, .value = parse_expression(reader)});
      reader.expect(Token::Kind::kPrintEnd, "}}");
    } else {
      for (const std::string_view word : words) {
        if (reader.looking_at_word(word)) return block;
      }
      block.push_back(parse_block_statement(reader));
    }
  }
}

// After `if` or `elif`.
Statement parse_if(TokenReader& reader) {
  const TokenReader::Level level(reader);
  Statement statement{.kind = StatementKind::kIf, .line = reader.line(), .value = parse_expression(reader)};
  end_tag(reader);
  statement.body = parse_until(reader, {"elif", "else", "endif"});
  if (reader.take_word("elif")) {
    statement.otherwise.push_back(parse_if(reader));
    return statement;
  }
  if (reader.take_word("else")) {
    end_tag(reader);
    statement.otherwise = parse_until(reader, {"endif"});
  }
  reader.expect_word("endif");
  end_tag(reader);
  return statement;
}

std::vector<std::string> parse_targets(TokenReader& reader) {
  const bool in_parentheses = reader.take_operator("(");
  std::vector<std::string> targets = {reader.expect_name()};
  while (reader.take_operator(",")) targets.push_back(reader.expect_name());
  if (in_parentheses) reader.expect_operator(")");
  return targets;
}

Statement parse_for(TokenReader& reader) {
  Statement statement{.kind = StatementKind::kFor, .line = reader.line(), .targets = parse_targets(reader)};
  reader.expect_word("in");
  statement.value = parse_unconditional(reader);
  if (reader.take_word("if")) statement.condition = parse_expression(reader);
  if (reader.looking_at_word("recursive")) reader.refuse_here("recursive loops are not supported");
  end_tag(reader);
  statement.body = parse_until(reader, {"else", "endfor"});
  if (reader.take_word("else")) {
    end_tag(reader);
    statement.otherwise = parse_until(reader, {"endfor"});
  }
  reader.expect_word("endfor");
  end_tag(reader);
  return statement;
}

// One value, or several with commas: a tuple, as in `set a, b = 1, 2`.
ExpressionPtr parse_values(TokenReader& reader) {
  ExpressionPtr first = parse_expression(reader);
  if (!reader.looking_at_operator(",")) return first;
  auto tuple = std::make_unique<Expression>(Expression{.kind = Expression::Kind::kTuple, .line = first->line});
  tuple->parts.push_back(std::move(first));
  while (reader.take_operator(",")) tuple->parts.push_back(parse_expression(reader));
  return tuple;
}

ExpressionPtr block_body(TokenReader& reader) {
  return make_expression(Expression::Kind::kName, reader.line(), std::string(kBlockBody));
}

// {% filter upper | trim %}…{% endfilter %}
Statement parse_filter_block(TokenReader& reader) {
  Statement statement{.kind = StatementKind::kFilter, .line = reader.line()};
  statement.value = parse_filter_chain(reader, block_body(reader));
  end_tag(reader);
  statement.body = parse_until(reader, {"endfilter"});
  reader.expect_word("endfilter");
  end_tag(reader);
  return statement;
}

Statement parse_set(TokenReader& reader) {
  Statement statement{.kind = StatementKind::kSet, .line = reader.line(), .targets = parse_targets(reader)};
  if (reader.take_operator(".")) {
    statement.target_owner = statement.targets.front();
    statement.targets = {reader.expect_name()};
  }
  if (reader.take_operator("=")) {
    statement.value = parse_values(reader);
    end_tag(reader);
    return statement;
  }
  if (reader.looking_at_operator("|")) statement.condition = parse_filter_chain(reader, block_body(reader));
  end_tag(reader);
  statement.body = parse_until(reader, {"endset"});
  reader.expect_word("endset");
  end_tag(reader);
  return statement;
}

void parse_parameters(TokenReader& reader, Macro& macro) {
  reader.expect_operator("(");
  while (!reader.take_operator(")")) {
    Parameter parameter{.name = reader.expect_name()};
    if (reader.take_operator("=")) parameter.otherwise = parse_expression(reader);
    macro.parameters.push_back(std::move(parameter));
    if (!reader.looking_at_operator(")")) reader.expect_operator(",");
  }
}

void parse_macro_body(TokenReader& reader, Macro& macro, std::string_view end) {
  end_tag(reader);
  const std::size_t begin = reader.place();
  macro.body = parse_until(reader, {end});
  macro.takes_more = reader.has_mentioned("varargs", begin);
  macro.takes_more_named = reader.has_mentioned("kwargs", begin);
  macro.takes_caller = reader.has_mentioned("caller", begin);
  reader.expect_word(end);
}

// {% call show(list) %}…{% endcall %}, or {% call(item) show(list) %}
Statement parse_call_block(TokenReader& reader) {
  Statement statement{.kind = StatementKind::kCall, .line = reader.line(), .macro = std::make_unique<Macro>()};
  statement.macro->name = "caller";
  if (reader.looking_at_operator("(")) parse_parameters(reader, *statement.macro);
  statement.value = parse_expression(reader);
  if (statement.value->kind != Expression::Kind::kCall) reader.refuse_here("'call' needs a call of a macro");
  parse_macro_body(reader, *statement.macro, "endcall");
  end_tag(reader);
  return statement;
}

Statement parse_macro(TokenReader& reader) {
  Statement statement{.kind = StatementKind::kMacro, .line = reader.line(), .macro = std::make_unique<Macro>()};
  statement.macro->name = reader.expect_name();
  parse_parameters(reader, *statement.macro);
  parse_macro_body(reader, *statement.macro, "endmacro");
  if (reader.looking_at(Token::Kind::kName)) reader.take();  // its name may be repeated
  end_tag(reader);
  return statement;
}

// transformers marks the model's own words by this block to find them when training; they are text to us.
Statement parse_generation(TokenReader& reader) {
  Statement statement{.kind = StatementKind::kBlock, .line = reader.line()};
  end_tag(reader);
  statement.body = parse_until(reader, {"endgeneration"});
  reader.expect_word("endgeneration");
  end_tag(reader);
  return statement;
}

Statement parse_block_statement(TokenReader& reader) {
  const int line = reader.line();
  const std::string word = reader.expect_name();
  if (word == "if") return parse_if(reader);
  if (word == "for") return parse_for(reader);
  if (word == "set") return parse_set(reader);
  if (word == "macro") return parse_macro(reader);
  if (word == "call") return parse_call_block(reader);
  if (word == "filter") return parse_filter_block(reader);
  if (word == "generation") return parse_generation(reader);
  if (word == "break" || word == "continue") {
    end_tag(reader);
    return {.kind = word == "break" ? StatementKind::kBreak : StatementKind::kContinue, .line = line};
  }
  if (word == "elif" || word == "else" || word.starts_with("end")) {
    refuse(reader.name(), line, fmt::format("'{}' closes nothing", printable(word, 40)));
  }
  throw Error(ErrorCode::kUnsupported, fmt::format("{}, line {}: the statement '{}' is not supported", reader.name(),
                                                   line, printable(word, 40)));
}

}  // namespace

Block parse_template(TokenReader& reader) { return parse_until(reader, {}); }

}  // namespace yoke::text::jinja
