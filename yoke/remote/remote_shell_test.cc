// One body over both shells: whatever is written for a node must hold for this machine too.
#include "yoke/remote/remote_shell.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <thread>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/process_tree.h"
#include "yoke/remote/local_shell.h"
#include "yoke/remote/sshd_testing.h"

namespace yoke::remote {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

class Shells : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("local")) {
      shell_ = std::make_unique<LocalShell>(Host{.name = "here"});
      return;
    }
    if (const std::string why = TestSshd::missing(); !why.empty()) GTEST_SKIP() << why;
    sshd_ = std::make_unique<TestSshd>();
    auto shell = std::make_unique<SshShell>(sshd_->host(), sshd_->options());
    ssh_ = shell.get();
    shell_ = std::move(shell);
  }
  void TearDown() override {
    if (ssh_) ssh_->disconnect();
  }

  Outcome sh(const std::string& script, std::vector<std::string> arguments = {}) {
    Command command{.argv = {"sh", "-c", script, "sh"}, .timeout = 60_s};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    return shell_->run(command);
  }

  ScratchDir scratch_;
  std::unique_ptr<TestSshd> sshd_;
  std::unique_ptr<RemoteShell> shell_;
  SshShell* ssh_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Both, Shells, ::testing::Values("local", "ssh"), [](const auto& each) { return each.param; });

TEST_P(Shells, GiveOutputAndExitStatus) {
  for (const int status : {0, 1, 127, 255}) {
    const Outcome outcome = sh("printf 'a\\nb'; printf c >&2; exit $1", {std::to_string(status)});
    EXPECT_EQ(outcome.out, "a\nb");
    EXPECT_EQ(outcome.err, "c");
    EXPECT_EQ(outcome.exit_status, status);
    EXPECT_EQ(outcome.ok(), status == 0);
  }
}

TEST_P(Shells, PassArgumentsEnvironmentInputAndFolder) {
  const Outcome outcome = shell_->run(
      {.argv = {"sh", "-c", "printf '%s|%s|%s|' \"$1\" \"$2\" \"$X\"; pwd -P; cat", "sh", "it's\n$HOME \\ !", "-n ü"},
       .environment = {{"X", "a\"b"}},
       .folder = "/usr",
       .input = "in\xff",
       .timeout = 60_s});
  EXPECT_EQ(outcome.out, "it's\n$HOME \\ !|-n ü|a\"b|/usr\nin\xff");
}

TEST_P(Shells, NameAProgramOrFolderThatIsNotThere) {
  EXPECT_ERROR(shell_->run({.argv = {"no-such-program-of-yoke"}, .timeout = 60_s}), ErrorCode::kNotFound,
               "no-such-program-of-yoke", "PATH");
  EXPECT_ERROR(shell_->run({.argv = {"true"}, .folder = "/no/such/place", .timeout = 60_s}), ErrorCode::kNotFound,
               "/no/such/place");
}

TEST_P(Shells, DeliverLines) {
  std::vector<std::string> out, err;
  shell_->run({.argv = {"sh", "-c", "echo one; echo oops >&2; printf last"},
               .timeout = 60_s,
               .on_line = [&](OutputStream stream, std::string_view line) {
                 (stream == OutputStream::kOut ? out : err).emplace_back(line);
               }});
  EXPECT_EQ(out, (std::vector<std::string>{"one", "last"}));
  EXPECT_EQ(err, (std::vector<std::string>{"oops"}));
}

TEST_P(Shells, DropOutputBeyondTheLimit) {
  const Outcome outcome =
      shell_->run({.argv = {"head", "-c", "300000", "/dev/zero"}, .timeout = 60_s, .output_limit = 1000_B});
  EXPECT_EQ(outcome.out.size(), 1000U);
  EXPECT_TRUE(outcome.truncated);
  EXPECT_TRUE(outcome.ok());
}

TEST_P(Shells, TalkWithALongLivedProgram) {
  const auto process = shell_->start(
      {.argv = {"sh", "-c", "while read -r x; do echo \"<$x>\"; done; exit 5"}, .input_mode = InputMode::kPipe});
  for (int i = 0; i < 20; ++i) {
    process->write(fmt::format("{}\n", i), Deadline::after(60_s));
    const auto line = process->read_line(Deadline::after(60_s));
    ASSERT_TRUE(line);
    EXPECT_EQ(line->text, fmt::format("<{}>", i));
  }
  EXPECT_FALSE(process->read_line(Deadline::after(20_ms)));
  EXPECT_FALSE(process->wait(Deadline::after(20_ms)));
  process->close_input();
  EXPECT_EQ(process->wait(Deadline::after(60_s)).value().exit_status, 5);
}

// All processes of the program, those too that left its session, whichever way it is ended.
TEST_P(Shells, EndTheProgramOverThere) {
  const std::string script = "setsid sh -c 'echo $$; exec sleep 1000' & echo $$; sleep 1000";
  std::vector<pid_t> started;
  const auto check_ended = [&] {
    ASSERT_EQ(started.size(), 2U);
    for (const pid_t pid : started) EXPECT_FALSE(living_process(pid)) << pid;
    started.clear();
  };
  {
    const auto process = shell_->start({.argv = {"sh", "-c", script}});
    for (int i = 0; i < 2; ++i) started.push_back(std::stoi(process->read_line(Deadline::after(60_s)).value().text));
    for (const pid_t pid : started) ASSERT_TRUE(living_process(pid));
  }
  check_ended();
  const Outcome outcome = shell_->run({.argv = {"sh", "-c", script}, .timeout = 2_s, .on_line = [&](auto, auto line) {
                                         started.push_back(std::stoi(std::string(line)));
                                       }});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_FALSE(outcome.ok());
  check_ended();
}

TEST_P(Shells, EndAProgramWhoseOutputNobodyRead) {
  const fs::path file = scratch_.path() / "number";
  auto process =
      shell_->start({.argv = {"sh", "-c", "echo $$ > \"$1.new\"; mv \"$1.new\" \"$1\"; sleep 1000", "sh", file}});
  for (const Deadline deadline = Deadline::after(60_s); !fs::exists(file) && !deadline.expired();)
    real_clock().sleep(5_ms);
  const pid_t pid = std::stoi(read_file(file));
  EXPECT_TRUE(living_process(pid));
  process.reset();
  EXPECT_FALSE(living_process(pid));
}

TEST_P(Shells, DoNotWaitForABackgroundProcessThatHoldsTheOutput) {
  const Outcome outcome = sh("sleep 1000 & echo $!");
  EXPECT_TRUE(outcome.ok());
  const pid_t left = std::stoi(outcome.out);
  EXPECT_EQ(living_process(left).has_value(), ssh_ != nullptr);  // as the headers have it
  if (ssh_) kill(left, SIGKILL);
}

TEST_P(Shells, CopyFilesWithTheirMode) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65537}, std::size_t{5'000'011}}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * i >> 5);
    const fs::path local = scratch_.path() / "local file";
    const std::string remote = (scratch_.path() / "-remote 'file'").native();
    write_file_atomically(local, content, {.mode = 0751});
    shell_->copy_to(local, remote);
    EXPECT_TRUE(read_file(remote) == content) << size;
    EXPECT_EQ(static_cast<unsigned>(fs::status(remote).permissions()), 0751U) << size;
  }
  shell_->copy_to(scratch_.path() / "local file", (scratch_.path() / "private").native(), {.mode = 0600});
  EXPECT_EQ(static_cast<unsigned>(fs::status(scratch_.path() / "private").permissions()), 0600U);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(scratch_.path())) ++files;
  EXPECT_EQ(files, 3U) << "temporary files were left";
}

TEST_P(Shells, NameWhatCannotBeCopied) {
  const fs::path local = scratch_.path() / "local";
  write_file_atomically(local, "x");
  const std::string path = scratch_.path().native();
  EXPECT_ERROR(shell_->copy_to(local, path + "/no/such/folder/x"), ErrorCode::kNotFound, "no/such/folder/x");
  EXPECT_ERROR(shell_->copy_to(path + "/nothing", path + "/x"), ErrorCode::kNotFound, "nothing");
  EXPECT_ERROR(shell_->copy_to(local, path), ErrorCode::kInvalid, "Is a directory");
  EXPECT_FALSE(fs::exists(path + "/x"));
}

TEST_P(Shells, CopyOverAFileThatRuns) {
  const std::string program = (scratch_.path() / "sleep").native();
  shell_->copy_to("/bin/sleep", program);
  const auto process = shell_->start({.argv = {program, "1000"}});
  shell_->copy_to("/bin/true", program);
  EXPECT_TRUE(shell_->run({.argv = {program}, .timeout = 60_s}).ok());
}

TEST_P(Shells, ServeTwoThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const std::string text = fmt::format("{} {}", t, i);
        right += shell_->run({.argv = {"cat"}, .input = text, .timeout = 60_s}).out == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 10);
}

}  // namespace
}  // namespace yoke::remote
