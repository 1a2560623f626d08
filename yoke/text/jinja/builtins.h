// The filters, tests, functions and methods of the language, each a table by name. Inside of the interpreter.
#pragma once
#include <string_view>

#include "yoke/text/jinja/interpreter.h"

namespace yoke::text::jinja {

using Builtin = Value (*)(Interpreter& interpreter, const Arguments& arguments);
using BuiltinTest = bool (*)(Interpreter& interpreter, const Arguments& arguments);

// Null where there is none of that name.
Builtin find_text_filter(std::string_view name);
Builtin find_list_filter(std::string_view name);
BuiltinTest find_test(std::string_view name);
Builtin find_function(std::string_view name);
Builtin find_text_method(std::string_view name);
Builtin find_map_method(std::string_view name);

// Arithmetic and joining: + - * / // % ** ~.
Value operate(Interpreter& interpreter, std::string_view name, const Value& left, const Value& right);
// value[start:stop:step] of a list or a text, with Python's rules; undefined bounds are absent.
Value slice(Interpreter& interpreter, const Value& value, const Value& start, const Value& stop, const Value& step);
// The text as one value per character; and only where the characters begin, with the text's end after them.
std::vector<Value> characters(Interpreter& interpreter, const MarkedText& text);
std::vector<std::size_t> character_places(Interpreter& interpreter, const MarkedText& text);

// The lines of a text as Python's splitlines() sees them: at \n, \r\n, \r and the separators of Unicode.
struct TextLine {
  std::size_t begin;
  std::size_t end;   // without what ends it
  std::size_t next;  // where the next begins
};
std::vector<TextLine> lines_of(Interpreter& interpreter, const MarkedText& text);

// Arguments of a certain kind; another kind is refused by name.
const MarkedText& text_subject(Interpreter& interpreter, const Arguments& arguments);
const MarkedText& text_argument(Interpreter& interpreter, const Arguments& arguments, std::size_t position,
                                std::string_view name);
std::int64_t integer_argument(Interpreter& interpreter, const Arguments& arguments, std::size_t position,
                              std::string_view name, std::int64_t otherwise);

}  // namespace yoke::text::jinja
