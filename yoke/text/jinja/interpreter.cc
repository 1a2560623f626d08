#include "yoke/text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/text/jinja/builtins.h"
#include "yoke/text/jinja/lexer.h"

namespace yoke::text::jinja {

const Value* Arguments::find(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [given, value] : named) {
    if (given == name) return &value;
  }
  return nullptr;
}

// A long template has many names, and each is looked for among all: that is charged for too.
const Value* Interpreter::find(std::string_view name, const Scope& scope) {
  for (const Scope* at = &scope; at; at = at->parent) {
    spend(at->names.size() / 16);
    for (const auto& [known, value] : at->names) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

void Interpreter::set(const std::string& name, Value value, Scope& scope) {
  spend(scope.names.size() / 16);
  for (auto& [known, held] : scope.names) {
    if (known == name) {
      held = std::move(value);
      return;
    }
  }
  scope.names.emplace_back(name, std::move(value));
}

// Counts while it lives.
class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& interpreter) : interpreter_(interpreter) {
    if (interpreter_.depth_ >= interpreter_.depth_max_) interpreter_.refuse("it recurses too deep");
    ++interpreter_.depth_;
  }
  ~Depth() { --interpreter_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& interpreter_;
};

void Interpreter::refuse(std::string_view why) const { jinja::refuse(name_, line_, why); }

Value Interpreter::text(MarkedText text) {
  check_size(text.size());
  spend(Budget::kTextSteps + text.size() / 16);
  return Value::text(std::move(text));
}

Value Interpreter::list(std::vector<Value> items, ListKind kind) {
  spend(1 + Budget::kItemSteps * items.size());
  return Value::list(std::move(items), kind);
}

Value Interpreter::map(std::vector<std::pair<Value, Value>> entries) {
  spend(1 + Budget::kEntrySteps * entries.size());
  return Value::map(std::move(entries));
}

void Interpreter::append(const MarkedText& text, MarkedText& out) {
  check_size(out.size() + text.size());
  spend(text.size() / 16);
  out.append(text);
}

MarkedText Interpreter::run(const Map& variables) {
  for (const auto& [name, value] : variables.entries) {
    if (name.as_text()) set(name.as_text()->text(), value, root_);
  }
  try {
    MarkedText out;
    if (execute(program_, root_, out) != Flow::kNext) refuse("'break' and 'continue' belong into a loop");
    return out;
  } catch (Error& error) {
    // Errors of values do not know the line, and a signal has none.
    if (error.message().starts_with(name_) || error.code() == ErrorCode::kInterrupted) throw;
    throw Error(error.code(), fmt::format("{}, line {}: {}", name_, line_, error.message()), error.hint());
  }
}

Interpreter::Flow Interpreter::execute(const Block& block, Scope& scope, MarkedText& out) {
  const Depth depth(*this);
  for (const Statement& statement : block) {
    line_ = statement.line;
    spend(1);
    if (const Flow flow = execute_statement(statement, scope, out); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_statement(const Statement& statement, Scope& scope, MarkedText& out) {
  switch (statement.kind) {
    case Statement::Kind::kText:
      append(MarkedText(statement.text, Origin::kTemplate), out);
      return Flow::kNext;
    case Statement::Kind::kPrint:
      append(print(evaluate(*statement.value, scope), budget_), out);
      return Flow::kNext;
    case Statement::Kind::kIf:
      return execute(evaluate(*statement.value, scope).truth() ? statement.body : statement.otherwise, scope, out);
    case Statement::Kind::kFor:
      return execute_for(statement, scope, out);
    case Statement::Kind::kSet:
      execute_set(statement, scope);
      return Flow::kNext;
    case Statement::Kind::kMacro:
      set(statement.macro->name, Value::function({.name = statement.macro->name, .macro = statement.macro.get()}),
          scope);
      return Flow::kNext;
    case Statement::Kind::kBlock:
      return execute(statement.body, scope, out);
    case Statement::Kind::kCall:
      execute_call(statement, scope, out);
      return Flow::kNext;
    case Statement::Kind::kFilter:
      append(print(filtered(*statement.value, capture(statement.body, scope), scope), budget_), out);
      return Flow::kNext;
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

void Interpreter::assign(const std::vector<std::string>& targets, const Value& value, Scope& scope) {
  if (targets.size() == 1) return set(targets.front(), value, scope);
  const std::vector<Value> values = iterate(value);
  if (values.size() != targets.size()) {
    refuse(fmt::format("{} names cannot take {} values", targets.size(), values.size()));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) set(targets[i], values[i], scope);
}

namespace {

Value loop_variable(const std::vector<Value>& items, std::size_t index) {
  const auto count = static_cast<std::int64_t>(items.size());
  const auto at = static_cast<std::int64_t>(index);
  std::vector<std::pair<Value, Value>> entries;
  const auto add = [&](std::string_view name, Value value) {
    entries.emplace_back(Value::text(std::string(name), Origin::kTemplate), std::move(value));
  };
  add("index", Value::integer(at + 1));
  add("index0", Value::integer(at));
  add("first", Value::boolean(at == 0));
  add("last", Value::boolean(at + 1 == count));
  add("length", Value::integer(count));
  add("revindex", Value::integer(count - at));
  add("revindex0", Value::integer(count - at - 1));
  if (index > 0) add("previtem", items[index - 1]);
  if (index + 1 < items.size()) add("nextitem", items[index + 1]);
  return Value::map(std::move(entries));
}

}  // namespace

Interpreter::Flow Interpreter::execute_for(const Statement& loop, Scope& scope, MarkedText& out) {
  std::vector<Value> items = iterate(evaluate(*loop.value, scope));
  if (loop.condition) {
    std::vector<Value> kept;
    for (const Value& item : items) {
      Scope inner{.parent = &scope};
      assign(loop.targets, item, inner);
      if (evaluate(*loop.condition, inner).truth()) kept.push_back(item);
    }
    items = std::move(kept);
  }
  if (items.empty()) return execute(loop.otherwise, scope, out);
  for (std::size_t i = 0; i < items.size(); ++i) {
    // What a round sets is gone in the next: Jinja's rule, and the reason for namespaces.
    Scope inner{.parent = &scope};
    assign(loop.targets, items[i], inner);
    set("loop", loop_variable(items, i), inner);
    spend(4);  // the loop variable costs more than an expression
    if (execute(loop.body, inner, out) == Flow::kBreak) break;
  }
  return Flow::kNext;
}

void Interpreter::execute_set(const Statement& set, Scope& scope) {
  const bool filters = set.condition != nullptr;
  const Value value = set.value ? evaluate(*set.value, scope)
                      : filters ? filtered(*set.condition, capture(set.body, scope), scope)
                                : text(capture(set.body, scope));
  if (set.target_owner.empty()) return assign(set.targets, value, scope);
  const Value* owner = find(set.target_owner, scope);
  Namespace* entries = owner ? owner->as_namespace() : nullptr;
  if (!entries) refuse(fmt::format("'{}' is not a namespace: only a namespace can be changed", set.target_owner));
  if (value.as_namespace()) refuse("a namespace cannot hold a namespace");
  spend(entries->entries.size() / 8);
  for (auto& [name, held] : entries->entries) {
    if (name == set.targets.front()) {
      held = value;
      return;
    }
  }
  entries->entries.emplace_back(set.targets.front(), value);
}

MarkedText Interpreter::capture(const Block& body, Scope& scope) {
  Scope inner{.parent = &scope};
  MarkedText out;
  if (execute(body, inner, out) != Flow::kNext) refuse("'break' and 'continue' belong into a loop");
  return out;
}

// The filters of a block see its text under a name that no template can write.
Value Interpreter::filtered(const Expression& filters, MarkedText body, Scope& scope) {
  Scope inner{.parent = &scope};
  set(std::string(kBlockBody), text(std::move(body)), inner);
  return evaluate(filters, inner);
}

// {% call(item) show(list) %}…{% endcall %}: the macro is given the block as caller().
void Interpreter::execute_call(const Statement& call, Scope& scope, MarkedText& out) {
  Arguments arguments = evaluate_arguments(*call.value, scope);
  line_ = call.line;
  const Value callee = arguments.subject;
  const Function* function = callee.as_function();
  if (!function || !function->macro) refuse("'call' needs a macro");
  const auto alive = std::make_shared<Scope*>(&scope);
  arguments.named.emplace_back(
      "caller", Value::function({.name = "caller", .macro = call.macro.get(), .scope = std::weak_ptr(alive)}));
  append(print(call_macro(*function, std::move(arguments)), budget_), out);
}

void Interpreter::set_parameters(const Macro& macro, const Arguments& arguments, Scope& inner) {
  const std::size_t count = macro.parameters.size();
  if (arguments.positional.size() > count && !macro.takes_more) {
    refuse(fmt::format("the macro '{}' takes at most {} arguments", macro.name, count));
  }
  spend(count * (1 + arguments.named.size() / 4));
  if (macro.takes_caller) set("caller", Value::undefined("caller"), inner);
  std::vector<std::pair<Value, Value>> more_named;
  for (const auto& [name, value] : arguments.named) {
    const bool known =
        std::any_of(macro.parameters.begin(), macro.parameters.end(),
                    [&, &wanted = name](const Parameter& parameter) { return parameter.name == wanted; });
    if (known) continue;
    if (name == "caller" && macro.takes_caller) {
      set(name, value, inner);
    } else if (macro.takes_more_named) {
      more_named.emplace_back(Value::text(name, Origin::kTemplate), value);
    } else {
      refuse(fmt::format("the macro '{}' has no argument '{}'", macro.name, name));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    if (const Value* given = arguments.find(i, parameter.name)) {
      set(parameter.name, *given, inner);
    } else {
      Value otherwise = parameter.otherwise ? evaluate(*parameter.otherwise, inner) : Value::undefined(parameter.name);
      set(parameter.name, std::move(otherwise), inner);
    }
  }
  if (macro.takes_more) {
    const std::size_t taken = std::min(count, arguments.positional.size());
    const auto rest = arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken);
    set("varargs", list({rest, arguments.positional.end()}, ListKind::kTuple), inner);
  }
  if (macro.takes_more_named) set("kwargs", map(std::move(more_named)), inner);
}

Value Interpreter::call_macro(const Function& function, Arguments arguments) {
  const int line = line_;
  // A macro sees the names of the template, not those of its caller; a caller's block sees those around it.
  Scope inner{.parent = &root_};
  std::shared_ptr<Scope*> around;
  if (function.scope) {
    around = function.scope->lock();
    if (!around) refuse("caller() is known only while its 'call' lasts");
    inner.parent = *around;
  }
  set_parameters(*function.macro, arguments, inner);
  Value result = text(capture(function.macro->body, inner));
  line_ = line;
  return result;
}

Value Interpreter::evaluate(const Expression& expression, Scope& scope) {
  const Depth depth(*this);
  line_ = expression.line;
  spend(1);
  return evaluate_known(expression, scope);
}

}  // namespace yoke::text::jinja
