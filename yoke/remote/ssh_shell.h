// Another machine, through the OpenSSH client and the user's own configuration of it, or through srun inside of a job
// of Slurm, on sites that let nobody log in to compute nodes.
//
//   SshShell shell({.name = "spark-2", .address = "192.168.1.22", .user = "nvidia"});
//   shell.run({.argv = {"nvidia-smi", "-L"}, .timeout = 10_s});
//
// Never asks for anything (BatchMode): what would need a password or the acceptance of a host key is an Error that says
// how to settle it once. Connections are shared and kept for a minute (ControlMaster, ControlPersist), so that the
// second command costs a round trip; disconnect() ends that. The host key rules are the user's.
//
// What is guaranteed about ending: at a timeout and with the RemoteProcess, all processes of a command that had begun
// are ended over there through a second session (SIGTERM, a second later SIGKILL), those too that left their session.
// Where the machine cannot be reached any more the program is not ended: it then meets a closed input and output. What
// a program that ended by itself left in the background goes on over there.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/remote/remote_shell.h"

namespace yoke::remote {

// A step of a running job of Slurm, on one of its nodes.
struct SlurmStep {
  std::string job;   // "12"
  std::string node;  // as Slurm calls it
};

struct SshOptions {
  std::filesystem::path config_file = {};     // instead of ~/.ssh/config
  std::filesystem::path identity = {};        // the only key to offer
  std::vector<std::string> extra = {};        // further -o options, "Name=value"
  std::filesystem::path control_folder = {};  // for the shared connections; in user_runtime_dir() where empty
  Seconds connect_timeout{10};                // until the far side's ssh server has answered
  Seconds login_timeout{30};                  // until the command runs: keys, and the login shell's startup files
  Seconds persist{60};                        // how long an unused shared connection is kept
  bool fresh_login = false;  // an earlier shell's connection is not joined, though the one that uses it keeps it
  std::string program = "ssh";
  std::optional<SlurmStep> slurm = {};  // instead of ssh: srun, in a job that has the host. No connection is shared
};

struct SshTarget;

// The job of Slurm that we are in, where it has this host: srun starts programs there too.
std::optional<SlurmStep> slurm_step_on(const Host& host);

class SshShell : public RemoteShell {
 public:
  explicit SshShell(Host host, SshOptions options = {});

  const Host& host() const override;
  // Connects where that has not been done. As with a local program, one that is not there is an Error. Outcome::signal
  // is never set: a shell over there tells 128 + n.
  Outcome run(const Command& command) override;
  std::unique_ptr<RemoteProcess> start(const Command& command) override;

  // Ends the shared connection, if there is one, and all that runs over it.
  void disconnect() noexcept;

 private:
  std::shared_ptr<const SshTarget> target_;  // shared with the processes, which may outlive us
};

}  // namespace yoke::remote
