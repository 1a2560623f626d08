// Against real servers, and everything that stands where one should be.
#include "yoke/remote/ssh_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/held_process.h"
#include "yoke/base/result.h"
#include "yoke/remote/sshd_testing.h"

namespace yoke::remote {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

constexpr Seconds kLong{60};

class Ssh : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = TestSshd::missing(); !why.empty()) GTEST_SKIP() << why;
  }
};

// Processes that have this in their command line, such as a shared connection left behind.
int count_processes(const std::string& text) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const UniqueFd fd(open((entry.path() / "cmdline").c_str(), O_RDONLY | O_CLOEXEC));
    char buffer[4096];
    const ssize_t size = fd ? read(fd.get(), buffer, sizeof buffer) : 0;
    if (size > 0)
      count += std::string_view(buffer, static_cast<std::size_t>(size)).find(text) != std::string_view::npos;
  }
  return count;
}

// The Error of a login that must fail; it names the node, and what to do.
Error login_error(SshShell& shell, Seconds timeout = kLong) {
  const Error error = error_of([&] { shell.run({.argv = {"true"}, .timeout = timeout}); });
  EXPECT_FALSE(error.hint().empty()) << error.message();
  EXPECT_NE(error.message().find("node (127.0.0.1)"), std::string::npos) << error.message();
  return error;
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Ssh, SharesOneConnectionAndLeavesNothingBehind) {
  std::string folder;
  {
    TestSshd sshd;
    folder = sshd.path("control").native();
    SshShell shell(sshd.host(), sshd.options());
    const std::string client = "echo $SSH_CONNECTION";
    const std::string first = shell.run({.argv = {"sh", "-c", client}, .timeout = kLong}).out;
    EXPECT_EQ(count_processes(folder), 1);  // the shared connection
    EXPECT_EQ(shell.run({.argv = {"sh", "-c", client}, .timeout = kLong}).out, first);
    shell.disconnect();
    EXPECT_NE(shell.run({.argv = {"sh", "-c", client}, .timeout = kLong}).out, first);
    shell.disconnect();
    const auto is_empty = [&] { return fs::is_empty(folder) && count_processes(folder) == 0; };
    for (const Deadline deadline = Deadline::after(kLong); !deadline.expired() && !is_empty();)
      real_clock().sleep(10_ms);
    EXPECT_TRUE(fs::is_empty(folder));
  }
  EXPECT_EQ(count_processes(folder), 0);
}

// The shared connection's holder: a daemon whose title has the socket's path.
pid_t holder_of(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto command = try_to([&] { return read_file(entry.path() / "cmdline"); });
    if (command && command->find(folder) != std::string::npos && command->find("[mux]") != std::string::npos)
      return std::stoi(entry.path().filename());
  }
  return 0;
}

// A suspended laptop or a frozen file system does to the holder what SIGSTOP does.
TEST_F(Ssh, ReplacesASharedConnectionThatHangs) {
  TestSshd sshd;
  SshShell shell(sshd.host(), sshd.options());
  const auto session = [&] { return shell.run({.argv = {"sh", "-c", "echo $SSH_CONNECTION"}, .timeout = 20_s}).out; };
  const std::string first = session();
  const pid_t holder = holder_of(sshd.path("control").native());
  ASSERT_GT(holder, 1);
  const auto held = HeldProcess::open(living_process(holder).value());
  ASSERT_TRUE(held);
  held->send(SIGSTOP);
  const std::string second = session();
  EXPECT_NE(second, first);
  EXPECT_TRUE(held->wait_until_ended(Deadline::after(5_s))) << "it would take away the new one's socket";
  EXPECT_EQ(session(), second) << "and the new one is shared";
  shell.disconnect();
}

TEST_F(Ssh, EndsAProgramThoughItsConnectionHangs) {
  TestSshd sshd;
  SshShell shell(sshd.host(), sshd.options());
  const auto process = shell.start({.argv = {"sh", "-c", "echo $$; exec sleep 1000"}});
  const pid_t there = std::stoi(process->read_line(Deadline::after(kLong)).value().text);
  const auto program = HeldProcess::open(living_process(there).value());
  ASSERT_TRUE(program);
  HeldProcess::open(living_process(holder_of(sshd.path("control").native())).value())->send(SIGSTOP);
  process->kill();
  EXPECT_TRUE(program->wait_until_ended(Deadline::after(10_s)));
  shell.disconnect();
}

// What it prints does not extend the time that a login has.
TEST_F(Ssh, GivesUpALoginThatPrintsWithoutEnd) {
  TestSshd sshd;
  SshOptions options = sshd.options();
  options.login_timeout = 2_s;
  SshShell shell(sshd.host(), options);
  const auto print = [&](const char* line) {
    for (const char* name : {".bashrc", ".zshenv"}) write_file_atomically(sshd.home() / name, line);
  };
  print("while :; do echo please wait; sleep 0.05; done\n");
  const Instant begun = real_clock().now();
  EXPECT_EQ(login_error(shell).code(), ErrorCode::kTimeout);
  EXPECT_LT(to_seconds(real_clock().now() - begun).value, 20);
  print("while :; do echo please wait; done\n");
  const Error flood = login_error(shell);
  EXPECT_EQ(flood.code(), ErrorCode::kPermission);
  EXPECT_MENTIONS(flood.message(), "printed more than");
  shell.disconnect();
}

TEST_F(Ssh, WorksWhereTheSocketsPathWouldBeTooLong) {
  TestSshd sshd;
  SshOptions options = sshd.options();
  options.control_folder = sshd.path("control") / std::string(80, 'x');
  SshShell shell(sshd.host(), options);
  EXPECT_EQ(shell.run({.argv = {"echo", "hi"}, .timeout = kLong}).out, "hi\n");
  EXPECT_TRUE(fs::is_empty(options.control_folder));
}

TEST_F(Ssh, RefusesAFolderThatOthersCanUse) {
  TestSshd sshd;
  fs::permissions(sshd.path("control"), fs::perms::all);
  EXPECT_ERROR(SshShell(sshd.host(), sshd.options()), ErrorCode::kPermission, "must be a folder that only you may use");
}

TEST_F(Ssh, IsNotConfusedByBanners) {
  TestSshd sshd("Banner " __FILE__ "\n");
  SshShell shell(sshd.host(), sshd.options());
  const Outcome outcome = shell.run({.argv = {"sh", "-c", "echo out; echo err >&2"}, .timeout = kLong});
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  shell.disconnect();
}

TEST_F(Ssh, IsNotConfusedByNoisyStartupFiles) {
  TestSshd sshd;
  // bash reads this for ssh sessions; other login shells of the user who runs this test read one of the others.
  for (const char* name : {".bashrc", ".zshenv"}) {
    write_file_atomically(sshd.home() / name,
                          "echo welcome; printf 'no newline'; echo warning >&2; trap 'echo bye' EXIT\n");
  }
  SshShell shell(sshd.host(), sshd.options());
  const Outcome outcome = shell.run({.argv = {"sh", "-c", "echo out; echo err >&2; exit 4"}, .timeout = kLong});
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.exit_status, 4);
  const auto process = shell.start({.argv = {"cat"}, .input_mode = InputMode::kPipe});
  process->write("echo\n", Deadline::after(kLong));
  EXPECT_EQ(process->read_line(Deadline::after(kLong)).value().text, "echo");
  shell.disconnect();
}

TEST_F(Ssh, ReportsALoginShellThatDoesNotRunCommands) {
  TestSshd sshd("ForceCommand echo This account is currently not available.; exit 1\n");
  SshShell shell(sshd.host(), sshd.options());
  const Error error = login_error(shell);
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_MENTIONS(error.message(), "not available");
}

TEST_F(Ssh, ReportsThatTheMachineWasLost) {
  TestSshd sshd;
  SshShell shell(sshd.host(), sshd.options());
  const auto process = shell.start({.argv = {"sh", "-c", "echo started; sleep 1000"}});
  EXPECT_EQ(process->read_line(Deadline::after(kLong)).value().text, "started");
  sshd.stop();
  try {
    process->wait(Deadline::after(kLong));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_MENTIONS(error.message(), "lost");
    EXPECT_MENTIONS(error.message(), "node (127.0.0.1)");
  }
  shell.disconnect();
}

TEST_F(Ssh, ReportsAServerThatWantsAPassword) {
  TestSshd sshd("PubkeyAuthentication no\nPasswordAuthentication yes\n");
  SshShell shell(sshd.host(), sshd.options());
  const Error error = login_error(shell);
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_MENTIONS(error.hint(), fmt::format("ssh-copy-id -p {} ", sshd.host().port));
}

TEST_F(Ssh, ReportsAKeyThatIsNotAccepted) {
  TestSshd sshd;
  SshOptions options = sshd.options();
  options.identity = sshd.path("other_key");
  SshShell shell(sshd.host(), options);
  EXPECT_EQ(login_error(shell).code(), ErrorCode::kPermission);
}

TEST_F(Ssh, ReportsAHostKeyThatHasChanged) {
  TestSshd sshd;
  sshd.know_host("other_key.pub");
  SshShell shell(sshd.host(), sshd.options());
  const Error error = login_error(shell);
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_MENTIONS(error.hint(), fmt::format("ssh-keygen -R '[127.0.0.1]:{}'", sshd.host().port));
}

TEST_F(Ssh, ReportsAHostKeyThatIsNotKnown) {
  TestSshd sshd;
  sshd.know_host("");
  SshShell shell(sshd.host(), sshd.options());
  const Error error = login_error(shell);
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_MENTIONS(error.message(), "not known yet");
  EXPECT_MENTIONS(error.hint(), fmt::format("ssh -p {}", sshd.host().port));
}

// The rest needs no server, only the client.
class SshWithoutServer : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      run({.argv = {"ssh", "-V"}});
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
    fs::permissions(scratch_.path(), fs::perms::owner_all);
    options_.config_file = "/dev/null";
    options_.control_folder = scratch_.path();
    options_.connect_timeout = 1_s;
  }
  ScratchDir scratch_;
  SshOptions options_;
};

TEST_F(SshWithoutServer, ReportsAPortThatRefuses) {
  const int port = listen_tcp({"127.0.0.1", 0}).local().port;
  SshShell shell({.name = "node", .address = "127.0.0.1", .port = port}, options_);
  const Error error = login_error(shell);
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_MENTIONS(error.message(), "refuses");
}

TEST_F(SshWithoutServer, ReportsAHostThatStaysSilent) {
  const Socket listener = listen_tcp({"127.0.0.1", 0});
  SshShell shell({.name = "node", .address = "127.0.0.1", .port = listener.local().port}, options_);
  EXPECT_EQ(login_error(shell).code(), ErrorCode::kTimeout);  // by ssh's own timeout
  options_.connect_timeout = 60_s;
  SshShell patient({.name = "node", .address = "127.0.0.1", .port = listener.local().port}, options_);
  EXPECT_EQ(login_error(patient, 200_ms).code(), ErrorCode::kTimeout);  // by the command's
  options_.login_timeout = 200_ms;
  SshShell impatient({.name = "node", .address = "127.0.0.1", .port = listener.local().port}, options_);
  EXPECT_EQ(login_error(impatient).code(), ErrorCode::kTimeout);  // by the login's
}

TEST_F(SshWithoutServer, ReportsANameThatDoesNotResolve) {
  options_.connect_timeout = kLong;
  SshShell shell({.name = "node", .address = "nonexistent.invalid"}, options_);
  EXPECT_ERROR(shell.run({.argv = {"true"}, .timeout = kLong}), ErrorCode::kUnavailable,
               "node (nonexistent.invalid) does not resolve", "address");
}

TEST_F(SshWithoutServer, ReportsThatSshIsNotInstalled) {
  options_.program = "no-such-ssh";
  SshShell shell({.name = "node", .address = "127.0.0.1"}, options_);
  EXPECT_ERROR(shell.run({.argv = {"true"}, .timeout = kLong}), ErrorCode::kNotFound, "no-such-ssh", "install");
}

}  // namespace
}  // namespace yoke::remote
