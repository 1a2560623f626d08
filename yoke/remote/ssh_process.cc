#include "yoke/remote/ssh_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/hash.h"
#include "yoke/base/text.h"
#include "yoke/remote/ssh_errors.h"
#include "yoke/remote/ssh_mux.h"

namespace yoke::remote {
namespace fs = std::filesystem;
namespace {

// After the program has ended, a background process of it may still hold the session's output. What the program wrote
// has arrived by then, but for what is under way: so long after the last piece of it we take it for complete.
constexpr Seconds kHeldOutputTime{2};
// A program that is ended right after its start may not have told its number yet: so long we wait for it.
constexpr Seconds kBeginTime{1};
// A holder of the shared connection answers within a millisecond. One that is silent for so long is replaced.
constexpr Seconds kHolderTime{2};
constexpr std::size_t kMaxLog = 64 << 10;
// What startup files print before our command runs: more is a login that does not end.
constexpr std::size_t kMaxLoginNoise = 64 << 10;
// For ending a program over there; a machine that does not answer within it is taken for lost.
constexpr Seconds kEndTime{5};

Command client_command(const SshTarget& target, const Command& command, const FrameTokens& tokens, const SshLog& log) {
  if (!target.control_path.empty()) end_hung_holder(target.control_path, std::min(kHolderTime, command.timeout));
  Command client;
  client.argv = target.argv(std::min(target.options.connect_timeout, command.timeout), log.path());
  client.argv.push_back(target.script(framed_command(command, tokens)));
  client.input = command.input;
  client.input_file = command.input_file;
  client.input_mode = command.input_mode;
  client.grace = command.grace;
  client.kill_scope = KillScope::kGroup;  // the shared connection is a daemon that the first client starts
  return client;
}

}  // namespace

std::string SshTarget::script(const std::string& command) const {
  if (!options.slurm) return command;
  // What srun says of its own step must not look like the place of a rank. And without `cat` standard output is a
  // terminal there.
  constexpr const char* kForget = "unset $(env | sed -n 's/^\\(SLURM[A-Z0-9_]*\\|PMIX*[A-Z0-9_]*\\)=.*/\\1/p'); ";
  return fmt::format("cd 2> /dev/null; {}({}\n) | cat", kForget, command);
}

std::vector<std::string> SshTarget::argv(Seconds connect_timeout, const fs::path& log) const {
  if (options.slurm) {
    // --unbuffered: else srun holds back what has no line end yet, and a protocol stands still.
    return {"srun",
            "--jobid=" + options.slurm->job,
            "--nodelist=" + options.slurm->node,
            "--nodes=1",
            "--ntasks=1",
            "--overlap",
            "--unbuffered",
            "--mpi=none",
            "--quiet",
            "--chdir=/",
            "sh",
            "-c"};
  }
  std::vector<std::string> words = {options.program, "-T", "-E", log.native()};
  if (!options.config_file.empty()) words.insert(words.end(), {"-F", options.config_file.native()});
  if (!options.identity.empty())
    words.insert(words.end(), {"-i", options.identity.native(), "-o", "IdentitiesOnly=yes"});
  const auto add = [&](std::string option) { words.insert(words.end(), {"-o", std::move(option)}); };
  for (const std::string& option : options.extra) add(option);
  add("BatchMode=yes");
  add(fmt::format("ConnectTimeout={}", std::max(1.0, std::ceil(connect_timeout.value))));
  add("LogLevel=ERROR");  // no banners
  add("ServerAliveInterval=5");
  add("ServerAliveCountMax=3");
  // What a user's configuration may ask for interactive sessions would disturb ours, or end them.
  add("ClearAllForwardings=yes");
  add("ForwardX11=no");
  add("PermitLocalCommand=no");
  add("RemoteCommand=none");
  if (control_path.empty()) {
    add("ControlPath=none");
  } else {
    add("ControlMaster=auto");
    add("ControlPath=" + control_path.native());
    add(fmt::format("ControlPersist={}", std::max(1.0, std::ceil(options.persist.value))));
  }
  if (host.port != 0) words.insert(words.end(), {"-p", std::to_string(host.port)});
  if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
  words.insert(words.end(), {"--", host.address});
  return words;
}

SshLog::SshLog() : memory_(memfd_create("yoke-ssh-log", MFD_CLOEXEC)) {
  if (!memory_) throw system_error(errno, "cannot make a log for ssh");
}

fs::path SshLog::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), memory_.get()); }

std::string SshLog::read() const noexcept {
  std::string text(kMaxLog, '\0');
  const ssize_t count = pread(memory_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

SshProcess::SshProcess(std::shared_ptr<const SshTarget> target, const Command& command)
    : target_(std::move(target)),
      command_(command),
      tokens_(make_frame_tokens()),
      process_(client_command(*target_, command, tokens_, log_)),
      streams_{{.frame = FrameReader(tokens_, FrameReader::Ends::kWithStream)},
               {.frame = FrameReader(tokens_, FrameReader::Ends::kByMark)}},
      login_deadline_(Deadline::after(target_->options.login_timeout)) {
  command_.input.clear();  // the process has its copy
}

SshProcess::~SshProcess() { kill(); }

// The mark with the process number may not have been read yet, or the login be under way.
void SshProcess::await_begin() noexcept {
  try {
    const Deadline deadline = Deadline::after(std::min(kBeginTime, login_deadline_.remaining()));
    do {
      pump(deadline);
    } while (!began() && !all_ended() && !deadline.expired());
  } catch (...) {
    command_.on_line = nullptr;  // what it throws must not keep us from ending the program
  }
}

void SshProcess::kill() noexcept {
  if (std::exchange(killed_, true)) return;
  if (!began()) await_begin();
  const bool runs = !all_ended() && stream(OutputStream::kErr).frame.end() == FrameReader::End::kNone;
  if (runs && began()) {
    try {
      const SshLog log;
      // A holder that hangs, too: the program is ended by a login of its own then.
      if (!target_->control_path.empty()) end_hung_holder(target_->control_path, kHolderTime);
      Command ending;
      ending.argv = target_->argv(kEndTime, log.path());
      ending.argv.push_back(target_->script(ending_command(streams_[0].frame.process_number(), tokens_)));
      ending.timeout = kEndTime;
      ending.kill_scope = KillScope::kGroup;
      run(ending);
    } catch (const std::exception&) {
      // Not reachable any more: the header of ssh_shell.h says what that means.
    }
  }
  process_.kill_tree();
}

// Moves what has come, waiting for it until the deadline; false where nothing came.
bool SshProcess::pump(Deadline deadline) {
  bool moved = false;
  if (process_.poll_output(deadline)) {
    moved = move_stream(OutputStream::kOut);
    moved = move_stream(OutputStream::kErr) || moved;
  }
  if (!began()) require_login();
  return moved;
}

// Our command has not begun yet. What the login shell prints does not extend its time, nor may it print for ever.
void SshProcess::require_login() const {
  const std::size_t noise = streams_[0].frame.noise_size() + streams_[1].frame.noise_size();
  if (noise > kMaxLoginNoise) {
    throw Error(ErrorCode::kPermission,
                fmt::format("the login shell of {} printed more than {} and did not run our command",
                            describe(target_->host), to_string(Bytes{kMaxLoginNoise})),
                "its startup files (~/.bashrc, ~/.profile) print without end: let them end for non-interactive shells");
  }
  if (!login_deadline_.expired() || all_ended()) return;
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("{} did not let us in by ssh within {}", describe(target_->host),
                  to_string(target_->options.login_timeout)),
      "is it on, and does a firewall drop the packets? If it answers a ping: look at its load, and at what the login "
      "shell's startup files (~/.bashrc, ~/.profile) wait for");
}

bool SshProcess::move_stream(OutputStream which) {
  Stream& from = stream(which);
  if (from.ended) return false;
  const std::string data = process_.read_bytes(which, std::string::npos, Deadline::after({0}));
  take_in(which, from.frame.take(data));
  if (process_.at_end(which)) {
    take_in(which, from.frame.finish());
    from.ended = true;
    take_in(which, {});  // a last line without newline
  }
  return !data.empty();
}

void SshProcess::take_in(OutputStream which, std::string_view data) {
  Stream& into = stream(which);
  truncated_ |= !into.kept.append_within(command_.output_limit, data);
  if (!command_.on_line) return;
  into.to_deliver.append(data);
  const auto more = into.ended ? LineBuffer::More::kNone : LineBuffer::More::kMayCome;
  while (const auto line = into.to_deliver.take_line(more)) command_.on_line(which, *line);
}

namespace {

// Pieces of a wait, so that the login deadline is looked at in between.
Deadline next_look(Deadline deadline) { return Deadline::after(std::min(deadline.remaining(), Seconds{0.2})); }

}  // namespace

std::optional<Process::Line> SshProcess::read_line(Deadline deadline) {
  for (;;) {
    for (const OutputStream which : {OutputStream::kOut, OutputStream::kErr}) {
      Stream& from = stream(which);
      if (auto line = from.kept.take_line(from.ended ? LineBuffer::More::kNone : LineBuffer::More::kMayCome)) {
        return Process::Line{which, *std::move(line)};
      }
    }
    if (all_ended()) require_began();
    if (all_ended() || deadline.expired()) return std::nullopt;
    pump(next_look(deadline));
  }
}

std::string SshProcess::read_bytes(OutputStream which, std::size_t most, Deadline deadline) {
  Stream& from = stream(which);
  while (from.kept.empty() && !from.ended && !deadline.expired()) pump(next_look(deadline));
  if (from.ended) require_began();
  return from.kept.take_bytes(most);
}

bool SshProcess::at_end(OutputStream which) const { return stream(which).ended && stream(which).kept.empty(); }

std::optional<Outcome> SshProcess::wait(Deadline deadline) {
  std::optional<Deadline> complete;
  while (!all_ended()) {
    const bool moved = pump(next_look(deadline));
    if (stream(OutputStream::kErr).frame.end() != FrameReader::End::kNone) {
      if (!complete || moved) complete = Deadline::after(kHeldOutputTime);
      if (complete->expired()) {
        process_.kill_tree();
        break;
      }
    }
    if (deadline.expired() && !all_ended()) return std::nullopt;
  }
  return finish(deadline);
}

std::optional<Outcome> SshProcess::finish(Deadline deadline) {
  std::optional<Outcome> outcome = process_.wait(deadline);
  if (!outcome) return std::nullopt;
  outcome->out = stream(OutputStream::kOut).kept.take_bytes(std::string::npos);
  outcome->err = stream(OutputStream::kErr).kept.take_bytes(std::string::npos);
  outcome->truncated = truncated_;
  outcome->signal.reset();
  const FrameReader& frame = stream(OutputStream::kErr).frame;
  switch (frame.end()) {
    case FrameReader::End::kStatus:
      outcome->exit_status = frame.status();
      return outcome;
    case FrameReader::End::kNoProgram:
      throw Error(
          ErrorCode::kNotFound,
          fmt::format("the program '{}' was not found on {}", printable(command_.argv[0]), describe(target_->host)),
          "install it there, or add its folder to the PATH of non-interactive shells");
    case FrameReader::End::kNoFolder:
      throw Error(ErrorCode::kNotFound,
                  fmt::format("there is no folder {} on {}", command_.folder->native(), describe(target_->host)));
    case FrameReader::End::kNone:
      break;
  }
  if (killed_) {
    outcome->exit_status = 128 + SIGTERM;
    return outcome;
  }
  require_began();
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} was lost while '{}' ran there", describe(target_->host), to_string(command_)),
              "is it still on, its cable plugged in, and its memory not exhausted?");
}

// The session has ended: an Error where our command never ran.
void SshProcess::require_began() {
  if (!began() && !killed_) throw not_started_error();
}

Error SshProcess::not_started_error() {
  const std::string log = log_.read();
  const std::string said = std::string(stream(OutputStream::kOut).frame.noise()) + "\n" +
                           std::string(stream(OutputStream::kErr).frame.noise());
  if (target_->options.slurm) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("srun started no step of job {} on {}: {}", target_->options.slurm->job,
                             describe(target_->host), printable(trim(said))),
                 "does the job still run (squeue), and is the node up (sinfo)?");
  }
  if (log.empty() && !trim(said).empty()) {
    return Error(
        ErrorCode::kPermission,
        fmt::format("the login shell of {} did not run our command, but printed: {}", describe(target_->host),
                    printable(trim(said))),
        "may this user run commands there (shell in /etc/passwd, ForceCommand), and do its startup files end?");
  }
  return ssh_error(target_->host, log);
}

}  // namespace yoke::remote
