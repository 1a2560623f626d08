#include "yoke/fleet/node.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/log.h"
#include "yoke/base/process.h"
#include "yoke/base/text.h"
#include "yoke/fleet/channel.h"
#include "yoke/remote/local_shell.h"

namespace yoke::fleet {
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

remote::NodeLook inspect_here(const fs::path& program) {
  utsname names{};
  uname(&names);
  return {.machine = names.machine,
          .hostname = names.nodename,
          .is_root = geteuid() == 0,
          .path = program_here(program),
          .whole = true};
}

}  // namespace

Node::Node(spec::ClusterNode place, int index, NodeOptions options)
    : place_(std::move(place)),
      index_(index),
      options_(std::move(options)),
      is_here_(remote::is_this_machine(place_, index)) {}

Node::~Node() = default;

remote::RemoteShell& Node::shell() {
  if (shell_) return *shell_;
  if (is_here_) {
    shell_ = std::make_unique<remote::LocalShell>(remote::host_of(place_));
  } else {
    shell_ = std::make_unique<remote::SshShell>(remote::host_of(place_), options_.ssh);
  }
  return *shell_;
}

// The first contact with a node: where ssh does not get there, and we are in a job of Slurm that has it, srun may.
template <class Work>
auto Node::at_first(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (is_here_ || logged_in() || options_.ssh.slurm || error.code() == ErrorCode::kInterrupted) throw;
    options_.ssh.slurm = remote::slurm_step_on(remote::host_of(place_));
    if (!options_.ssh.slurm) throw;
    log(LogLevel::kDebug, "{}: ssh does not reach it ({}): trying srun", name(), error.message());
    shell_.reset();
    try {
      return work();
    } catch (const Error& second) {
      if (second.code() == ErrorCode::kInterrupted) throw;
      throw Error(error.code(), fmt::format("{}; and by srun: {}", error.message(), second.message()), error.hint());
    }
  }
}

const remote::NodeLook& Node::look() {
  if (logged_in()) return look_;
  look_ = at_first([&] {
    return is_here_ ? inspect_here(options_.program->path())
                    : remote::find_deployed_program(shell(), *options_.program);
  });
  return look_;
}

const std::string& Node::program() {
  if (!look().whole) {
    log(LogLevel::kDebug, "{}: the program is missing or differs there: copying it", name());
    remote::copy_program(shell(), *options_.program, look_);
    look_.whole = true;
  }
  return look_.path;
}

std::string Node::carried_program() {
  return is_here_ ? remote::deploy_program(shell(), options_.program->path()) : program();
}

void Node::reach() {
  if (connection_) return;
  const Instant start = real_clock().now();
  log(LogLevel::kDebug, "{}: reaching {}", name(), is_here_ ? "this machine itself, without ssh" : place_.address);
  connection_ = at_first([&] {
    auto connection = std::make_shared<Connection>(is_here_ ? start_here() : start_there(), name());
    connection->await_hello(Deadline::after(kHelloLimit));
    return connection;
  });
  log(LogLevel::kDebug, "{}: its agent answers after {}", name(), to_string(to_seconds(real_clock().now() - start)));
}

std::unique_ptr<remote::RemoteProcess> Node::start_here() {
  look();
  return start_agent(look_.path, look_.is_root);
}

// One execution of ssh where the program is there and no sudo is needed.
std::unique_ptr<remote::RemoteProcess> Node::start_there() {
  if (!logged_in()) {
    const remote::StartAs as =
        options_.rights == agent::AgentRights::kRoot ? remote::StartAs::kRootOnly : remote::StartAs::kAnybody;
    if (auto process = remote::start_carried(shell(), *options_.program, {.words = {kAgentWord}, .as = as}, look_)) {
      return process;
    }
  }
  return start_agent(program(), look_.is_root);
}

std::unique_ptr<remote::RemoteProcess> Node::start_agent(const std::string& program, bool is_root) {
  RootStart start{{program, kAgentWord}, ""};
  if (options_.rights == agent::AgentRights::kRoot && !is_root) {
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

std::unique_ptr<remote::RemoteProcess> Node::open(std::string_view action, const Document& question) {
  reach();
  const std::uint32_t id = connection_->ask(action, question);
  return std::make_unique<Channel>(connection_, id, name());
}

Seconds Node::clock_ahead() const { return is_here_ || !connection_ ? Seconds{0} : connection_->clock_ahead(); }

Outcome Node::run(const Command& command) { return shell().run(command); }

std::optional<std::string> Node::ended_slurm_job() const {
  const auto step = remote::slurm_step_on(remote::host_of(place_));
  if (!step) return std::nullopt;
  const auto answer = try_to([&] {
    return yoke::run({.argv = {"squeue", "--noheader", "--jobs=" + step->job, "--format=%T"}, .timeout = 3_s});
  });
  if (!answer) return std::nullopt;
  // A controller that does not answer says nothing of the job.
  if (!answer->ok()) {
    const bool forgotten = answer->err.find("Invalid job id") != std::string::npos;
    return forgotten ? std::optional(step->job) : std::nullopt;
  }
  constexpr std::array<std::string_view, 7> kLives = {"PENDING", "CONFIGURING", "RUNNING",  "SUSPENDED",
                                                      "STOPPED", "RESIZING",    "SIGNALING"};
  const bool lives = std::ranges::find(kLives, trim(answer->out)) != kLives.end();
  return lives ? std::nullopt : std::optional(step->job);
}

void Node::disconnect() noexcept {
  if (auto* ssh = dynamic_cast<remote::SshShell*>(shell_.get())) ssh->disconnect();
}

void Node::begin_end() noexcept {
  if (connection_) connection_->begin_end();
}

}  // namespace yoke::fleet
