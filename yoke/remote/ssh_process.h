// A program on the other machine: the ssh client as a local process, its streams freed of everything that is not the
// program's (ssh_frame.h), and its failures told from the program's (ssh_errors.h). Used by ssh_shell.cc only.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "yoke/base/files.h"
#include "yoke/base/line_buffer.h"
#include "yoke/remote/remote_shell.h"
#include "yoke/remote/ssh_frame.h"
#include "yoke/remote/ssh_shell.h"

namespace yoke::remote {

// How to reach one host.
struct SshTarget {
  Host host;
  SshOptions options;
  std::filesystem::path folder;        // for the control socket; private to the user
  std::filesystem::path control_path;  // empty: connections are not shared

  // The client's argument vector, up to and without the remote command.
  std::vector<std::string> argv(Seconds connect_timeout, const std::filesystem::path& log) const;
  // The last word: a command for the login shell, or for the shell that srun starts.
  std::string script(const std::string& command) const;
};

// For what the client itself has to say, apart from what the far side writes to stderr. In memory, so that a killed
// head leaves nothing; the client finds it by our process, as it closes every descriptor that it inherits.
class SshLog {
 public:
  SshLog();
  std::filesystem::path path() const;
  std::string read() const noexcept;

 private:
  UniqueFd memory_;
};

class SshProcess final : public RemoteProcess {
 public:
  SshProcess(std::shared_ptr<const SshTarget> target, const Command& command);
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;
  ~SshProcess() override;

  void write(std::string_view data, Deadline deadline) override { process_.write(data, deadline); }
  void close_input() override { process_.close_input(); }
  std::optional<Process::Line> read_line(Deadline deadline) override;
  std::string read_bytes(OutputStream stream, std::size_t most, Deadline deadline) override;
  bool at_end(OutputStream stream) const override;
  std::optional<Outcome> wait(Deadline deadline) override;
  void kill() noexcept override;

  bool began() const { return streams_[0].frame.began(); }

 private:
  struct Stream {
    FrameReader frame;
    LineBuffer kept = {};
    LineBuffer to_deliver = {};
    bool ended = false;
  };

  Stream& stream(OutputStream which) { return streams_[static_cast<std::size_t>(which)]; }
  const Stream& stream(OutputStream which) const { return streams_[static_cast<std::size_t>(which)]; }
  bool all_ended() const { return streams_[0].ended && streams_[1].ended; }
  bool pump(Deadline deadline);
  bool move_stream(OutputStream which);
  void take_in(OutputStream which, std::string_view data);
  void require_login() const;
  void await_begin() noexcept;
  void require_began();
  std::optional<Outcome> finish(Deadline deadline);
  Error not_started_error();

  std::shared_ptr<const SshTarget> target_;
  Command command_;  // as asked
  FrameTokens tokens_;
  SshLog log_;
  Process process_;
  Stream streams_[2];
  Deadline login_deadline_;
  bool truncated_ = false;
  bool killed_ = false;
};

}  // namespace yoke::remote
