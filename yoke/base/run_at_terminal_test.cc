#include "yoke/base/run_at_terminal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/process.h"

namespace yoke {
namespace {

TEST(RunAtTerminal, TheProgramHasOurSessionAndProcessGroup) {
  const ScratchDir scratch;
  // Fields 5 and 6 of /proc/PID/stat, behind the name in parentheses.
  const int status = run_at_terminal(
      {.argv = {"sh", "-c", "cut -d')' -f2 /proc/$$/stat | cut -d' ' -f4,5 > ids"}, .folder = scratch.path()});
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(scratch.path() / "ids"), std::to_string(getpgrp()) + " " + std::to_string(getsid(0)) + "\n");
}

TEST(RunAtTerminal, ReturnsTheExitStatusAndGivesTheInput) {
  EXPECT_EQ(run_at_terminal({.argv = {"sh", "-c", "exit 7"}}), 7);
  EXPECT_EQ(run_at_terminal({.argv = {"sh", "-c", "kill -KILL $$"}}), 128 + SIGKILL);
  EXPECT_EQ(run_at_terminal({.argv = {"grep", "-qx", "the key"}, .input = "first\nthe key\n"}), 0);
  // A program that reads nothing.
  EXPECT_EQ(run_at_terminal({.argv = {"false"}, .input = std::string(1 << 20, 'x')}), 1);
  EXPECT_ERROR(run_at_terminal({.argv = {"./no-such-program"}}), ErrorCode::kNotFound,
               "cannot start ./no-such-program");
}

// Without handlers of our own the first of these would end the test's program: so in a child.
int run_and_send(int signal_number, TerminalCommand::CtrlC ctrl_c) {
  return exit_status_of(run_forked([&] {
    install_interrupt_handlers();
    const std::string script =
        "trap 'exit 9' TERM; kill -" + std::to_string(signal_number) + " $PPID; sleep 0.2; exit 5";
    try {
      return run_at_terminal({.argv = {"sh", "-c", script}, .ctrl_c = ctrl_c});
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInterrupted ? 42 : 43;
    }
  }));
}

TEST(RunAtTerminal, CtrlCIsIgnoredWhereItIsTheProgramsAlone) {
  EXPECT_EQ(run_and_send(SIGINT, TerminalCommand::CtrlC::kProgram), 5);
  EXPECT_EQ(run_and_send(SIGINT, TerminalCommand::CtrlC::kBoth), 42);
}

TEST(RunAtTerminal, SigtermIsPassedOnAndEndsUs) {
  const ScratchDir scratch;
  const std::string mark = (scratch.path() / "ended").native();
  const int status = exit_status_of(run_forked([&] {
    install_interrupt_handlers();
    const std::string script =
        "trap 'echo > " + mark + "; exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.05; done";
    try {
      return run_at_terminal({.argv = {"sh", "-c", script}});
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInterrupted ? 42 : 43;
    }
  }));
  EXPECT_EQ(status, 42);
  EXPECT_TRUE(std::filesystem::exists(mark));
}

}  // namespace
}  // namespace yoke
