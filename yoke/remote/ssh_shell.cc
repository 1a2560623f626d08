#include "yoke/remote/ssh_shell.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/result.h"
#include "yoke/remote/ssh_errors.h"
#include "yoke/remote/ssh_mux.h"
#include "yoke/remote/ssh_process.h"
#include "yoke/spec/hostlist.h"

namespace yoke::remote {
namespace fs = std::filesystem;
namespace {

// The kernel takes 107 bytes for a socket's path, and ssh first makes one with 17 more to rename it.
constexpr std::size_t kMaxControlPath = 107 - 17;

// Who can write here can take over our connections.
fs::path private_folder(const fs::path& wanted) {
  fs::path folder = wanted.empty() ? user_runtime_dir() / "ssh" : wanted;
  make_folder(folder, 0700);
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0) throw system_error(errno, fmt::format("cannot look at {}", folder.native()));
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077U) != 0) {
    throw Error(ErrorCode::kPermission, fmt::format("{} must be a folder that only you may use", folder.native()),
                fmt::format("remove it, or: chmod 700 {}", folder.native()));
  }
  return folder;
}

std::shared_ptr<const SshTarget> make_target(Host host, SshOptions options) {
  SshTarget target{std::move(host), std::move(options), {}, {}};
  target.folder = private_folder(target.options.control_folder);
  // Whatever decides who answers, or how, is part of the name: two shells share a connection only where all is equal.
  std::string identity = fmt::format("{}\n{}\n{}\n{}\n{}\n", target.host.address, target.host.user, target.host.port,
                                     target.options.config_file.native(), target.options.identity.native());
  for (const std::string& option : target.options.extra) identity += option + "\n";
  target.control_path = target.folder / sha256_hex(identity).substr(0, 16);
  if (target.control_path.native().size() > kMaxControlPath || target.options.slurm) target.control_path.clear();
  return std::make_shared<const SshTarget>(std::move(target));
}

void leave_shared_connection(const SshTarget& target) noexcept {
  std::error_code none;
  if (target.control_path.empty() || !fs::exists(target.control_path, none)) return;
  if (end_hung_holder(target.control_path, {1})) return;
  if (!stop_sharing(target.control_path, Deadline::after({1}))) fs::remove(target.control_path, none);
}

}  // namespace

std::optional<SlurmStep> slurm_step_on(const Host& host) {
  const char* const job = std::getenv("SLURM_JOB_ID");
  const char* const nodes = std::getenv("SLURM_JOB_NODELIST");
  if (job == nullptr || nodes == nullptr || *job == 0) return std::nullopt;
  const auto names = try_to([&] { return spec::expand_hostlist(nodes); });
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (name == host.name || name == host.address) return SlurmStep{job, name};
  }
  return std::nullopt;
}

SshShell::SshShell(Host host, SshOptions options) : target_(make_target(std::move(host), std::move(options))) {
  if (target_->options.fresh_login) leave_shared_connection(*target_);
}

const Host& SshShell::host() const { return target_->host; }

std::unique_ptr<RemoteProcess> SshShell::start(const Command& command) {
  return std::make_unique<SshProcess>(target_, command);
}

Outcome SshShell::run(const Command& command) {
  SshProcess process(target_, command);
  if (auto outcome = process.wait(Deadline::after(command.timeout))) return *std::move(outcome);
  if (!process.began()) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("{} did not answer ssh within {}", describe(host()), to_string(command.timeout)),
                "is it on and not overloaded, and does a firewall drop the packets? Try ping");
  }
  process.kill();
  Outcome outcome = process.wait(Deadline::after({5})).value_or(Outcome{.exit_status = 1});
  outcome.timed_out = true;
  return outcome;
}

void SshShell::disconnect() noexcept {
  std::error_code none;
  if (target_->control_path.empty() || !fs::exists(target_->control_path, none)) return;
  if (end_hung_holder(target_->control_path, {1})) return;
  try {
    const SshLog log;
    std::vector<std::string> argv = target_->argv({5}, log.path());
    argv.insert(argv.begin() + 1, {"-O", "exit"});
    yoke::run({.argv = std::move(argv), .timeout = {5}});
  } catch (const std::exception&) {
    // There was no connection, or no ssh.
  }
}

}  // namespace yoke::remote
