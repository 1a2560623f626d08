#include "yoke/fleet/node.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "yoke/base/error.h"
#include "yoke/fleet/channel.h"
#include "yoke/remote/local_shell.h"

namespace yoke {
namespace fs = std::filesystem;
namespace {

using namespace literals;

constexpr const char* kAgentWord = "agent";
constexpr Seconds kHelloLimit{40};

// As sudo's rules can name it; by our number where the file has been replaced meanwhile, as behind sudo "self" is sudo.
std::string program_here(const fs::path& program) {
  std::error_code failure;
  const fs::path path = fs::read_symlink(program, failure);
  if (failure) return program.native();  // no link
  const bool is_it = fs::equivalent(path, program, failure) && !failure;
  return is_it ? path.native() : fmt::format("/proc/{}/exe", getpid());
}

NodeLook look_here(const fs::path& program) {
  utsname names{};
  uname(&names);
  return {.machine = names.machine,
          .hostname = names.nodename,
          .is_root = geteuid() == 0,
          .path = program_here(program),
          .whole = true};
}

}  // namespace

Node::Node(ClusterNode place, int index, NodeOptions options)
    : place_(std::move(place)), index_(index), options_(std::move(options)), is_here_(is_this_machine(place_, index)) {}

Node::~Node() = default;

RemoteShell& Node::shell() {
  if (shell_) return *shell_;
  if (is_here_) {
    shell_ = std::make_unique<LocalShell>(host_of(place_));
  } else {
    shell_ = std::make_unique<SshShell>(host_of(place_), options_.ssh);
  }
  return *shell_;
}

const NodeLook& Node::look() {
  if (logged_in()) return look_;
  look_ = is_here_ ? look_here(options_.program->path()) : look_for_program(shell(), *options_.program);
  return look_;
}

const std::string& Node::program() {
  if (!look().whole) {
    copy_program(shell(), *options_.program, look_);
    look_.whole = true;
  }
  return look_.path;
}

std::string Node::carried_program() { return is_here_ ? carry_program(shell(), options_.program->path()) : program(); }

void Node::reach() {
  if (connection_) return;
  auto connection = std::make_shared<Connection>(is_here_ ? start_here() : start_there(), name());
  connection->await_hello(Deadline::after(kHelloLimit));
  connection_ = std::move(connection);
}

std::unique_ptr<RemoteProcess> Node::start_here() {
  look();
  return start_agent(look_.path, look_.is_root);
}

// One execution of ssh where the program is there and no sudo is needed.
std::unique_ptr<RemoteProcess> Node::start_there() {
  if (!logged_in()) {
    const StartAs as = options_.rights == AgentRights::kRoot ? StartAs::kRootOnly : StartAs::kAnybody;
    if (auto process = start_carried(shell(), *options_.program, {.words = {kAgentWord}, .as = as}, look_)) {
      return process;
    }
  }
  return start_agent(program(), look_.is_root);
}

std::unique_ptr<RemoteProcess> Node::start_agent(const std::string& program, bool is_root) {
  RootStart start{{program, kAgentWord}, ""};
  if (options_.rights == AgentRights::kRoot && !is_root) {
    start = start_as_root(shell(), start.argv, options_.password);
  }
  auto process = shell().start({.argv = start.argv, .input_mode = InputMode::kPipe});
  if (!start.input.empty()) process->write(start.input, Deadline::after(10_s));
  return process;
}

Connection& Node::connection() {
  reach();
  return *connection_;
}

std::uint32_t Node::begin(std::string_view action, const Document& question) {
  try {
    return connection().ask(action, question);
  } catch (Error& error) {
    throw std::move(error).in("on " + name());
  }
}

Document Node::answer(std::uint32_t question, Deadline deadline,
                      const std::function<void(std::string_view)>& on_progress) {
  try {
    return connection().answer(question, deadline, on_progress);
  } catch (Error& error) {
    throw std::move(error).in("on " + name());
  }
}

Document Node::ask(std::string_view action, const Document& question, Seconds limit,
                   const std::function<void(std::string_view)>& on_progress) {
  return answer(begin(action, question), Deadline::after(limit), on_progress);
}

std::unique_ptr<RemoteProcess> Node::open(std::string_view action, const Document& question) {
  reach();
  const std::uint32_t id = connection_->ask(action, question);
  return std::make_unique<Channel>(connection_, id);
}

Seconds Node::clock_ahead() const { return is_here_ || !connection_ ? Seconds{0} : connection_->clock_ahead(); }

Outcome Node::run(const Command& command) { return shell().run(command); }

void Node::disconnect() noexcept {
  if (auto* ssh = dynamic_cast<SshShell*>(shell_.get())) ssh->disconnect();
}

void Node::begin_end() noexcept {
  if (connection_) connection_->begin_end();
}

}  // namespace yoke
