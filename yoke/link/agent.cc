#include "yoke/link/agent.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/link/discover_node.h"
#include "yoke/link/measuring_actions.h"
#include "yoke/link/setup_actions.h"

namespace yoke {

struct AgentFailure {
  std::string code, message, hint;
};

template <class Visitor>
void visit_fields(Visitor& visit, AgentFailure& failure) {
  visit.required("code", failure.code);
  visit.required("message", failure.message);
  visit.required("hint", failure.hint);
}

namespace {

std::string error_line(const Error& error) {
  std::string message = error.message();
  for (const std::string& where : error.context()) message += ", " + where;
  const AgentFailure failure{std::string(info(error.code()).name), message, error.hint()};
  return print_json(Document::map({{"error", to_document(failure)}}), JsonLayout::kOneLine);
}

[[noreturn]] void throw_failure(const AgentFailure& failure) {
  for (const ErrorCodeInfo& row : error_codes()) {
    if (row.name == failure.code) throw Error(row.code, failure.message, failure.hint);
  }
  throw Error(ErrorCode::kInternal, failure.message, failure.hint);
}

}  // namespace

std::string answer_request(const AgentActions& actions, const std::string& line) {
  const auto answer = try_to([&] {
    const Document request = parse_json(line, "request");
    const Document* name = request.find("action");
    const Document* body = request.find("body");
    const auto found = name && body ? actions.find(name->text) : actions.end();
    if (found == actions.end()) {
      throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no request", printable(line, 80)));
    }
    return found->second(*body);
  });
  if (!answer) return error_line(answer.error());
  return print_json(Document::map({{"answer", *answer}}), JsonLayout::kOneLine);
}

std::string request_line(const std::string& action, const Document& body) {
  return print_json(Document::map({{"action", Document::string(action)}, {"body", body}}), JsonLayout::kOneLine) + "\n";
}

Document read_answer_line(const std::string& line) {
  const Document answer = parse_json(line, "answer");
  if (const Document* error = answer.find("error")) throw_failure(from_document<AgentFailure>(*error));
  const Document* body = answer.find("answer");
  if (!body) throw Error(ErrorCode::kInvalid, fmt::format("'{}' is no answer", printable(line, 80)));
  return *body;
}

std::optional<int> run_link_part(const std::vector<std::string>& arguments) {
  if (arguments != std::vector<std::string>{"link-agent"}) return std::nullopt;
  AgentActions actions = measuring_actions();
  actions.merge(setup_actions());
  actions.merge(discover_actions());
  std::string line;
  while (std::getline(std::cin, line)) {
    fmt::print("{}\n", answer_request(actions, line));
    std::fflush(stdout);
  }
  return kExitOk;
}

}  // namespace yoke
