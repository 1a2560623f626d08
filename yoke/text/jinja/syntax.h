// A parsed template: statements that hold expressions, each with its line. Plain data, made by the parser, walked by
// the interpreter.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/text/jinja/value.h"

namespace yoke::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Expression {
  enum class Kind {
    kLiteral,      // literal
    kName,         // name
    kList,         // parts
    kTuple,        // parts
    kMap,          // parts: key, value, key, value, …
    kAttribute,    // parts[0].name
    kItem,         // parts[0][parts[1]]
    kSlice,        // parts[0][parts[1]:parts[2]:parts[3]], absent bounds are null
    kCall,         // parts[0](parts[1], …, named)
    kUnpacked,     // *parts[0] as an argument, **parts[0] as a named one
    kFilter,       // parts[0]|name(parts[1], …, named)
    kTest,         // parts[0] is name(parts[1], …)
    kNot,          // not parts[0]
    kUnary,        // name parts[0], where name is + or -
    kBinary,       // parts[0] name parts[1]: + - * / // % ** ~
    kCompare,      // parts[0] operators[0] parts[1] operators[1] …, as Python chains them
    kAnd,          // parts[0] and parts[1]
    kOr,           //
    kConditional,  // parts[1] if parts[0] else parts[2], which may be null
  };
  Kind kind;
  int line = 0;
  std::string name = {};
  Value literal = {};
  std::vector<ExpressionPtr> parts = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  std::vector<std::string> operators = {};
};

struct Statement;
using Block = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: undefined where it is not given
};
struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  // Whether the body mentions varargs, kwargs and caller, which is how Jinja knows that they are taken.
  bool takes_more = false;
  bool takes_more_named = false;
  bool takes_caller = false;
};

// How the filters of a {% filter %} or {% set x | … %} block name its text.
inline constexpr std::string_view kBlockBody = " body";

struct Statement {
  enum class Kind {
    kText,      // text
    kPrint,     // {{ value }}
    kIf,        // if value: body, else: otherwise (an elif is an if in otherwise)
    kFor,       // for targets in value if condition: body, else: otherwise
    kSet,       // targets = value; or target_owner.targets[0] = value; or, without a value, the body's text, through
                // the filters of condition where it has some
    kMacro,     // macro
    kCall,      // value is a call, macro the block that it is given
    kFilter,    // value of the body's text
    kBlock,     // body, where a block means nothing to us ({% generation %})
    kBreak,     //
    kContinue,  //
  };
  Kind kind;
  int line = 0;
  std::string text = {};
  ExpressionPtr value = {};
  ExpressionPtr condition = {};
  std::vector<std::string> targets = {};
  std::string target_owner = {};
  Block body = {};
  Block otherwise = {};
  std::unique_ptr<Macro> macro = {};
};

}  // namespace yoke::text::jinja
