#include "yoke/cli/probe_nodes.h"

#include <fmt/format.h>

#include <future>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/base/progress.h"
#include "yoke/remote/carry.h"
#include "yoke/remote/ssh_shell.h"

namespace yoke {
namespace {

// What the program over there answered with --json where it failed: {"error": {"message": …, "hint": …}}.
Error error_of(const SshShell& shell, const Outcome& outcome) {
  const auto answer = try_to([&] { return parse_json(outcome.out, "the answer"); });
  const Document* const error = answer ? answer->find("error") : nullptr;
  const Document* const message = error ? error->find("message") : nullptr;
  if (!message) return remote_tool_error(shell.host(), "yoke probe failed there", outcome);
  const Document* const hint = error->find("hint");
  return Error(ErrorCode::kUnavailable, fmt::format("yoke probe failed there: {}", message->text),
               hint ? hint->text : "");
}

Machine probe_node(const ClusterNode& node, const ProbeNodesOptions& options) {
  SshShell shell(host_of(node), {.connect_timeout = options.timeout, .login_timeout = options.timeout});
  const std::string program = carry_program(shell, "/proc/self/exe");
  const Outcome outcome = shell.run({.argv = {program, "probe", "--here", "--json"}, .timeout = options.timeout});
  if (!outcome.ok()) throw error_of(shell, outcome);
  return machine_from_document(parse_json(outcome.out, fmt::format("the answer of {}", node.name)));
}

}  // namespace

std::vector<Result<Machine>> probe_nodes(const std::vector<ClusterNode>& nodes, const ProbeNodesOptions& options) {
  std::vector<std::future<Result<Machine>>> answers;
  for (const ClusterNode& node : nodes) {
    answers.push_back(
        std::async(std::launch::async, [&] { return try_to([&] { return probe_node(node, options); }); }));
  }
  std::vector<Result<Machine>> results;
  Progress progress("probing the nodes", static_cast<std::int64_t>(answers.size()));
  for (auto& answer : answers) {
    while (answer.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
      progress.update(static_cast<std::int64_t>(results.size()), nodes[results.size()].name);
    }
    results.push_back(answer.get());
  }
  return results;
}

Document machine_document(const Machine& machine) {
  return Document::map({{"schema", Document::number(std::int64_t{kMachineSchema})}, {"machine", to_json(machine)}});
}

Machine machine_from_document(const Document& document) {
  const Document* const schema = document.find("schema");
  const Document* const machine = document.find("machine");
  if (!schema || !machine) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} is not what 'yoke probe --json' prints", document.where));
  }
  if (schema->text != fmt::format("{}", kMachineSchema)) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: schema {} is not known", document.where, schema->text),
                fmt::format("this yoke reads schema {}: use the same yoke on both sides", kMachineSchema));
  }
  return machine_from_json(*machine);
}

}  // namespace yoke
