#include "yoke/link/node_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <future>

#include "yoke/base/error.h"
#include "yoke/base/result.h"
#include "yoke/base/text.h"
#include "yoke/job/node_channel.h"
#include "yoke/link/agent.h"
#include "yoke/remote/carry.h"
#include "yoke/remote/local_shell.h"
#include "yoke/remote/ssh_shell.h"

namespace yoke {
namespace {

using namespace literals;

constexpr const char* kProgram = "/proc/self/exe";

// How root is had over there: as who we are, or by sudo without a question.
std::vector<std::string> root_prefix(RemoteShell& shell) {
  const Outcome who = shell.run({.argv = {"id", "-u"}, .timeout = 20_s});
  if (who.ok() && trim(who.out) == "0") return {};
  const Outcome allowed = shell.run({.argv = {"sudo", "-n", "true"}, .timeout = 20_s});
  if (allowed.ok()) return {"sudo", "-n"};
  throw Error(ErrorCode::kPermission,
              fmt::format("{}: changing the network needs root, and sudo would ask for a password", shell.host().name),
              "log in there as root, or let sudo run without a password while this is done (visudo: USER ALL=(ALL) "
              "NOPASSWD: ALL)");
}

}  // namespace

NodeAgent::NodeAgent(const ClusterNode& node, int index, AgentRights rights) : name_(node.name) {
  try {
    start(node, index, rights);
  } catch (Error& error) {
    throw std::move(error).in("starting yoke on " + name_);
  }
}

void NodeAgent::start(const ClusterNode& node, int index, AgentRights rights) {
  std::string program = kProgram;
  if (is_this_machine(node, index)) {
    shell_ = std::make_unique<LocalShell>(host_of(node));
    // By our number, as behind sudo "self" is sudo; and it runs also where the file has been replaced meanwhile.
    program = fmt::format("/proc/{}/exe", getpid());
  } else {
    shell_ = std::make_unique<SshShell>(host_of(node));
    program = carry_program(*shell_, kProgram);
  }
  std::vector<std::string> argv;
  if (rights == AgentRights::kRoot) argv = root_prefix(*shell_);
  argv.insert(argv.end(), {program, "link-agent"});
  process_ = shell_->start({.argv = argv, .input_mode = InputMode::kPipe});
}

void NodeAgent::ask(const std::string& action, const Document& body) {
  try {
    process_->write(request_line(action, body), Deadline::after(10_s));
  } catch (Error& error) {
    throw std::move(error).in("on " + name_);
  }
}

Document NodeAgent::answer(Deadline deadline) {
  try {
    std::string complaint;
    while (const auto line = process_->read_line(deadline)) {
      if (line->stream == OutputStream::kOut) return read_answer_line(line->text);
      complaint = line->text;
    }
    if (process_->at_end(OutputStream::kOut)) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("yoke's agent on {} ended{}", name_, complaint.empty() ? "" : ": " + complaint));
    }
    throw Error(ErrorCode::kTimeout, fmt::format("no answer from yoke's agent on {}", name_));
  } catch (Error& error) {
    throw std::move(error).in("on " + name_);
  }
}

Document NodeAgent::call(const std::string& action, const Document& body, Seconds limit) {
  ask(action, body);
  return answer(Deadline::after(limit));
}

std::vector<std::unique_ptr<NodeAgent>> start_agents(const std::vector<ClusterNode>& nodes,
                                                     const std::vector<int>& indices, AgentRights rights) {
  std::vector<std::future<Result<std::unique_ptr<NodeAgent>>>> starting;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    starting.push_back(std::async(std::launch::async, [&, i] {
      return try_to([&] { return std::make_unique<NodeAgent>(nodes[i], indices[i], rights); });
    }));
  }
  std::vector<std::unique_ptr<NodeAgent>> agents;
  std::optional<Error> first;
  std::string others;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto agent = starting[i].get();
    if (agent) {
      agents.push_back(*std::move(agent));
    } else if (!first) {
      first = agent.error();
    } else {
      others += "; also " + agent.error().message();
    }
  }
  if (first) throw Error(first->code(), first->message() + others, first->hint());
  return agents;
}

}  // namespace yoke
