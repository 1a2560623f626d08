#include "yoke/link/node_agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
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
namespace fs = std::filesystem;
namespace {

using namespace literals;

constexpr const char* kProgram = "/proc/self/exe";

// Who we are over there, and by which of the node's addresses we came; empty where we came by none.
struct Login {
  bool is_root = false;
  std::string address;
};

Login look_at_login(RemoteShell& shell) {
  constexpr const char* kScript = "id -u; set -- $SSH_CONNECTION; echo \"${3:-}\"";
  const Outcome outcome = shell.run({.argv = {"sh", "-c", kScript}, .timeout = 20_s});
  const std::vector<std::string> lines = split(outcome.out, '\n');
  if (!outcome.ok() || lines.size() < 2) return {};
  return {.is_root = lines[0] == "0", .address = lines[1].substr(0, lines[1].find('%'))};
}

// Ours as sudo's rules can name it; by our number where the file has been replaced meanwhile, as behind sudo "self" is
// sudo.
std::string program_here() {
  std::error_code failure;
  const fs::path path = fs::read_symlink(kProgram, failure);
  const bool is_it = !failure && fs::equivalent(path, kProgram, failure) && !failure;
  return is_it ? path.native() : fmt::format("/proc/{}/exe", getpid());
}

}  // namespace

NodeAgent::NodeAgent(const ClusterNode& node, int index, AgentRights rights, SudoPassword* password)
    : name_(node.name) {
  try {
    start(node, index, rights, password);
  } catch (Error& error) {
    throw std::move(error).in("starting yoke on " + name_);
  }
}

void NodeAgent::start(const ClusterNode& node, int index, AgentRights rights, SudoPassword* password) {
  std::string program = kProgram;
  if (is_this_machine(node, index)) {
    shell_ = std::make_unique<LocalShell>(host_of(node));
    program = program_here();
  } else {
    shell_ = std::make_unique<SshShell>(host_of(node));
    program = carry_program(*shell_, kProgram);
  }
  RootStart agent{{program, "link-agent"}, ""};
  if (rights == AgentRights::kRoot) {
    const Login login = look_at_login(*shell_);
    reached_at_ = login.address;
    if (!login.is_root) agent = start_as_root(*shell_, agent.argv, password);
  }
  process_ = shell_->start({.argv = agent.argv, .input_mode = InputMode::kPipe});
  if (!agent.input.empty()) process_->write(agent.input, Deadline::after(10_s));
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
                                                     const std::vector<int>& indices, AgentRights rights,
                                                     SudoPassword* password) {
  std::vector<std::future<Result<std::unique_ptr<NodeAgent>>>> starting;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    starting.push_back(std::async(std::launch::async, [&, i] {
      return try_to([&] { return std::make_unique<NodeAgent>(nodes[i], indices[i], rights, password); });
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
