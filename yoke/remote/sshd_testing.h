// A real ssh server for tests: on the loopback, on a free port, with its own host key, user key and home folder. Gone
// with all its sessions when this goes. Nothing of the user's own ssh is read or written.
#pragma once
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "yoke/base/error.h"
#include "yoke/base/process.h"
#include "yoke/base/socket.h"
#include "yoke/remote/ssh_shell.h"

namespace yoke::remote {

class TestSshd {
 public:
  // `settings` are further lines of sshd_config, before ours: the first of a kind holds.
  explicit TestSshd(const std::string& settings = {}) {
    namespace fs = std::filesystem;
    for (const char* folder : {"home", "control"}) fs::create_directory(path(folder));
    fs::permissions(path("control"), fs::perms::owner_all);
    for (const char* key : {"host_key", "user_key", "other_key"}) {
      run_or_throw({.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path(key).native()}});
    }
    fs::copy_file(path("user_key.pub"), path("authorized_keys"));
    // As packages do it; sshd as root wants it.
    if (geteuid() == 0) fs::create_directories("/run/sshd");
    start(settings);
    know_host("host_key.pub");
    write_file_atomically(path("ssh_config"), fmt::format("UserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\n",
                                                          path("known_hosts").native()));
  }

  std::filesystem::path path(const char* name) const { return scratch_.path() / name; }
  std::filesystem::path home() const { return path("home"); }
  Host host() const { return {.name = "node", .address = "127.0.0.1", .user = user(), .port = port_}; }
  SshOptions options() const {
    return {.config_file = path("ssh_config"), .identity = path("user_key"), .control_folder = path("control")};
  }
  // Which host key the client expects; an empty file for none.
  void know_host(const char* key_file) {
    const std::string key = *key_file ? read_file(path(key_file)) : "";
    write_file_atomically(path("known_hosts"), key.empty() ? "" : fmt::format("[127.0.0.1]:{} {}", port_, key));
  }
  void stop() { server_.reset(); }

  // Why tests with a server cannot be run here, or nothing. Asked of ssh itself, not of the code under test.
  static const std::string& missing() {
    static const std::string reason = try_login();
    return reason;
  }

 private:
  static std::string try_login() {
    try {
      const TestSshd sshd;
      const Outcome outcome =
          run({.argv = {"ssh", "-F", sshd.path("ssh_config").native(), "-i", sshd.path("user_key").native(), "-o",
                        "BatchMode=yes", "-p", std::to_string(sshd.port_), user() + "@127.0.0.1", "true"},
               .timeout = {60}});
      return outcome.ok() ? "" : "cannot log in to an ssh server of our own: " + outcome.err;
    } catch (const Error& error) {
      return "no ssh server can be started: " + error.message();
    }
  }

  static std::string user() {
    const passwd* entry = getpwuid(geteuid());
    return entry ? entry->pw_name : "root";
  }

  // Between our finding a free port and sshd's taking it somebody else may: then another.
  void start(const std::string& settings) {
    for (int attempt = 0;; ++attempt) {
      port_ = listen_tcp({"127.0.0.1", 0}).local().port;
      write_file_atomically(
          path("sshd_config"),
          settings + fmt::format("\nPort {}\nListenAddress 127.0.0.1\nHostKey {}\n"
                                 "AuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n"
                                 "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
                                 "PermitRootLogin yes\nMaxStartups 100\nSetEnv HOME={}\n",
                                 port_, path("host_key").native(), path("authorized_keys").native(), home().native()));
      server_ = std::make_unique<Process>(Command{.argv = {program(), "-D", "-e", "-f", path("sshd_config").native()},
                                                  .grace = {0.2},
                                                  .output_limit = {1 << 20}});
      for (const Deadline deadline = Deadline::after({30}); !deadline.expired();) {
        const auto line = server_->read_line(Deadline::after({0.1}));
        if (line && line->text.find("Server listening on") != std::string::npos) return;
        if (server_->at_end()) break;
      }
      if (attempt == 5) throw Error(ErrorCode::kUnavailable, "sshd did not start");
    }
  }

  static std::string program() {
    return std::filesystem::exists("/usr/sbin/sshd") ? "/usr/sbin/sshd" : "/usr/bin/sshd";  // sshd wants a full path
  }

  ScratchDir scratch_{"sshd"};
  int port_ = 0;
  std::unique_ptr<Process> server_;
};

}  // namespace yoke::remote
