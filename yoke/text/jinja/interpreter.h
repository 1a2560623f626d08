// Runs a parsed template. A template is a program from outside: its steps, its depth and the size of what it makes are
// bounded, so that one that loops for ever, recurses or grows is an Error. One run per Interpreter, on one thread.
#pragma once
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/text/jinja/syntax.h"

namespace yoke::text::jinja {

struct Arguments {
  Value subject;  // of a filter, a test or a method
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // By position or by name; null where it is not given.
  const Value* find(std::size_t position, std::string_view name) const;
};

// The names that are known at a place of the template, and those around it.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string, Value>> names = {};
};

class Interpreter {
 public:
  // The clock is what strftime_now prints. All must live as long.
  Interpreter(const Block& program, const std::string& name, const Limits& limits, const std::tm& clock)
      : program_(program), name_(name), depth_max_(limits.depth), clock_(clock), budget_(limits) {}

  MarkedText run(const Map& variables);

  // What the functions of the language need of it.
  [[noreturn]] void refuse(std::string_view why) const;
  Budget& budget() { return budget_; }
  void spend(std::uint64_t steps) { budget_.spend(steps); }
  void check_size(std::size_t bytes) const { budget_.check_size(bytes); }
  // Values of one's own are charged for, and not too long.
  Value text(MarkedText text);
  Value list(std::vector<Value> items, ListKind kind = ListKind::kList);
  Value map(std::vector<std::pair<Value, Value>> entries);
  // What a loop over it sees: items, keys, characters; nothing for undefined.
  std::vector<Value> iterate(const Value& value);
  Value attribute(const Value& value, std::string_view name);
  Value item(const Value& value, const Value& key);
  Value filter(std::string_view name, const Arguments& arguments);
  bool test(std::string_view name, const Arguments& arguments);
  const std::tm& clock() const { return clock_; }
  // What `in` asks.
  bool contains(const Value& container, const Value& value);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class Depth;
  const Value* find(std::string_view name, const Scope& scope);
  void set(const std::string& name, Value value, Scope& scope);

  Flow execute(const Block& block, Scope& scope, MarkedText& out);
  Flow execute_statement(const Statement& statement, Scope& scope, MarkedText& out);
  Flow execute_for(const Statement& loop, Scope& scope, MarkedText& out);
  void execute_set(const Statement& set, Scope& scope);
  void execute_call(const Statement& call, Scope& scope, MarkedText& out);
  Value filtered(const Expression& filters, MarkedText body, Scope& scope);
  void assign(const std::vector<std::string>& targets, const Value& value, Scope& scope);
  void append(const MarkedText& text, MarkedText& out);
  MarkedText capture(const Block& body, Scope& scope);

  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_known(const Expression& expression, Scope& scope);
  Value evaluate_name(const Expression& name, Scope& scope);
  Value evaluate_map(const Expression& map, Scope& scope);
  Value evaluate_slice(const Expression& slice, Scope& scope);
  Value evaluate_compare(const Expression& chain, Scope& scope);
  Value evaluate_unary(const Expression& unary, Scope& scope);
  Value evaluate_call(const Expression& call, Scope& scope);
  Value evaluate_filter(const Expression& filter, Scope& scope);
  bool evaluate_test(const Expression& test, Scope& scope);
  Arguments evaluate_arguments(const Expression& call, Scope& scope);
  bool holds(std::string_view comparison, const Value& left, const Value& right);
  void unpack_named(const Value& value, Arguments& arguments);
  Value call_macro(const Function& function, Arguments arguments);
  void set_parameters(const Macro& macro, const Arguments& arguments, Scope& inner);

  const Block& program_;
  const std::string& name_;
  const int depth_max_;
  const std::tm& clock_;
  Scope root_;
  Budget budget_;
  int depth_ = 0;
  int line_ = 0;
};

}  // namespace yoke::text::jinja
