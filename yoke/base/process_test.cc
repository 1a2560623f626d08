#include "yoke/base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/line_buffer.h"
#include "yoke/base/process_tree.h"

namespace yoke {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

Command shell(std::string script) { return {.argv = {"sh", "-c", std::move(script)}, .timeout = 60_s}; }

bool alive(pid_t pid) { return living_process(pid).has_value(); }

template <class Condition>
bool eventually(Condition condition) {
  for (const Deadline deadline = Deadline::after(30_s); !deadline.expired(); real_clock().sleep(5_ms)) {
    if (condition()) return true;
  }
  return false;
}

TEST(Process, GivesBothStreamsAndTheExitStatus) {
  const Outcome outcome = run(shell("printf 'one\\ntwo'; printf three >&2; exit 7"));
  EXPECT_EQ(outcome.out, "one\ntwo");
  EXPECT_EQ(outcome.err, "three");
  EXPECT_EQ(outcome.exit_status, 7);
  EXPECT_FALSE(outcome.signal);
  EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.describe(), "exited with status 7: three");
  EXPECT_TRUE(run({.argv = {"true"}}).ok());
}

TEST(Process, DescribesAnEndByTheLastLineThatReportsSomething) {
  EXPECT_EQ(run(shell("printf 'first\nthe reason \n-----\n\n  *** 3 ***\n' >&2; exit 1")).describe(),
            "exited with status 1: the reason");
  EXPECT_EQ(run(shell("printf -- '--\n-----\n' >&2; exit 1")).describe(), "exited with status 1: -----");
  EXPECT_EQ(run(shell("printf 'größe\n' >&2; exit 1")).describe(), "exited with status 1: größe");
}

TEST(Process, ReportsWhichSignalEndedTheProgram) {
  const Outcome outcome = run(shell("kill -SEGV $$"));
  EXPECT_EQ(outcome.signal, SIGSEGV);
  EXPECT_EQ(outcome.exit_status, 128 + SIGSEGV);
  EXPECT_FALSE(outcome.ok());
}

TEST(Process, PassesArgumentsUntouched) {
  const std::string odd = "a b'c\"d$(echo)\n*\xff\\";
  EXPECT_EQ(run({.argv = {"printf", "%s|%s|", odd, ""}}).out, odd + "||");
}

TEST(Process, RefusesAnArgumentWithAZeroByte) {
  EXPECT_ERROR(run({.argv = {"echo", std::string("a\0b", 3)}}), ErrorCode::kInvalid,
               "an argument of 'echo' holds a zero byte");
}

TEST(Process, AddsToTheEnvironmentAndRunsInTheFolder) {
  const ScratchDir scratch;
  const Outcome outcome = run({.argv = {"sh", "-c", "echo $NEW; echo ${PATH:+kept}; pwd -P"},
                               .environment = {{"NEW", "yes"}},
                               .folder = scratch.path()});
  EXPECT_EQ(outcome.out, fmt::format("yes\nkept\n{}\n", fs::canonical(scratch.path()).native()));
}

TEST(Process, NamesAProgramThatIsNotThere) {
  EXPECT_ERROR(run({.argv = {"no-such-program-of-yoke"}}), ErrorCode::kNotFound, "no-such-program-of-yoke",
               "install it; it was looked for in PATH");
  EXPECT_ERROR(run({.argv = {"/no/such/program"}}), ErrorCode::kNotFound, "/no/such/program", "is it there");
}

TEST(Process, NamesAProgramThatMayNotBeRun) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "plain", "#!/bin/sh\n", {.mode = 0644});
  EXPECT_ERROR(run({.argv = {(scratch.path() / "plain").native()}}), ErrorCode::kPermission, "plain");
  EXPECT_ERROR(run({.argv = {"plain"}, .environment = {{"PATH", scratch.path().native()}}}), ErrorCode::kPermission,
               "plain");
}

TEST(Process, NamesAFileThatIsNoProgram) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "noise",
                        "\x7f"
                        "ELF nothing",
                        {.mode = 0755});
  EXPECT_ERROR(run({.argv = {(scratch.path() / "noise").native()}}), ErrorCode::kUnsupported,
               "noise' is no program for this machine");
  write_file_atomically(scratch.path() / "script", "#!/no/such/interpreter\n", {.mode = 0755});
  EXPECT_ERROR(run({.argv = {(scratch.path() / "script").native()}}), ErrorCode::kNotFound, "script' was not found");
}

TEST(Process, NamesAFolderThatIsNotThere) {
  EXPECT_ERROR(run({.argv = {"true"}, .folder = "/no/such/folder"}), ErrorCode::kNotFound, "/no/such/folder");
}

TEST(Process, FeedsTheInputWhileItTakesTheOutput) {
  std::string input(3'000'000, 'x');
  input[1'000'003] = '\n';
  EXPECT_EQ(run({.argv = {"cat"}, .input = input}).out, input);
}

TEST(Process, FeedsTheInputFromAFile) {
  const ScratchDir scratch;
  write_file_atomically(scratch.path() / "input", "from a file");
  EXPECT_EQ(run({.argv = {"cat"}, .input_file = scratch.path() / "input"}).out, "from a file");
}

TEST(Process, HasNoInputWhereNoneIsGiven) {
  EXPECT_EQ(run({.argv = {"readlink", "/proc/self/fd/0"}, .timeout = 60_s}).out, "/dev/null\n");
}

TEST(Process, SurvivesAProgramThatDoesNotReadItsInput) {
  const Outcome outcome = run({.argv = {"true"}, .input = std::string(1 << 20, 'x')});
  EXPECT_TRUE(outcome.ok());
  Process process({.argv = {"true"}, .input_mode = InputMode::kPipe});
  const Error error = error_of([&] {
    for (;;) process.write(std::string(1 << 16, 'x'), Deadline::after(60_s));
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
}

TEST(Process, EndsWhatTakesTooLong) {
  const Command command = {.argv = {"sleep", "1000"}, .timeout = 100_ms};
  const Outcome outcome = run(command);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_ERROR(run_or_throw(command), ErrorCode::kTimeout, "did not end within 100 ms");
}

TEST(Process, KillsWhatIgnoresTheRequestToEnd) {
  Command command = shell("trap '' TERM; echo started; while :; do sleep 1000; done");
  command.grace = 100_ms;
  Process process(std::move(command));
  ASSERT_TRUE(process.read_line(Deadline::after(60_s)));
  process.kill_tree();
  EXPECT_EQ(process.wait(Deadline::after(60_s)).value().signal, SIGKILL);
}

TEST(Process, KeepsWhatWasWrittenBeforeItWasKilled) {
  const ScratchDir scratch;
  Command command = shell("head -c 30000 /dev/zero; echo x > \"$WRITTEN\"; sleep 1000");
  command.environment["WRITTEN"] = (scratch.path() / "written").native();
  Process process(std::move(command));
  ASSERT_TRUE(eventually([&] { return fs::exists(scratch.path() / "written"); }));
  process.kill_tree();
  EXPECT_EQ(process.wait(Deadline::after(60_s)).value().out.size(), 30000U);
}

// The grandchild is orphaned, has its own session and ignores SIGTERM; only its environment tells whose it is.
constexpr std::string_view kDaemon =
    "sh -c 'setsid sh -c \"trap \\\"\\\" TERM HUP; echo \\$\\$; exec >/dev/null 2>&1; "
    "while :; do sleep 1000; done\" & exit' ; ";

TEST(Process, KillsGrandchildrenThatChangedTheirSession) {
  pid_t daemon = 0;
  {
    Command command = shell(std::string(kDaemon) + "sleep 1000");
    command.grace = 100_ms;
    Process process(std::move(command));
    const auto line = process.read_line(Deadline::after(60_s));
    ASSERT_TRUE(line);
    daemon = std::stoi(line->text);
    ASSERT_TRUE(alive(daemon));
    ASSERT_NE(getpgid(daemon), process.pid());
    EXPECT_TRUE(process.wait(Deadline::after(10_ms)) == std::nullopt);
  }
  EXPECT_FALSE(alive(daemon));
}

TEST(Process, KillsWhatAProgramLeavesInTheBackground) {
  Command command = shell(std::string(kDaemon));
  command.grace = 50_ms;
  const Outcome outcome = run(command);
  EXPECT_TRUE(outcome.ok());
  EXPECT_FALSE(alive(std::stoi(outcome.out)));
}

TEST(Process, KillsChildrenThatCleanedTheirEnvironment) {
  // The shell dies of SIGTERM at once and orphans the other, which ignores it: it must have been seen before.
  Command command = shell("env -i setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done'; true");
  command.grace = 100_ms;
  Process process(std::move(command));
  const auto line = process.read_line(Deadline::after(60_s));
  ASSERT_TRUE(line);
  process.kill_tree();
  EXPECT_FALSE(alive(std::stoi(line->text)));
}

TEST(Process, KillsWhatIsForkedWhileItIsBeingKilled) {
  // At SIGTERM it leaves an orphan, without our mark and outside of our group: only its session tells whose it is.
  const ScratchDir scratch;
  Command command = shell(
      "env -i FILE=\"$FILE\" setsid sh -c 'trap \"sleep 1000 & echo \\$! > \\$FILE; exit\" TERM; "
      "echo ready; while :; do sleep 0.05; done'; true");
  command.environment["FILE"] = (scratch.path() / "number").native();
  Process process(std::move(command));
  ASSERT_TRUE(process.read_line(Deadline::after(60_s)));
  process.kill_tree();
  EXPECT_FALSE(alive(std::stoi(read_file(scratch.path() / "number"))));
}

TEST(Process, KeepsTheMarkOfItsStarter) {
  Process process({.argv = {"sh", "-c", "echo $YOKE_PROCESS"}, .environment = {{"YOKE_PROCESS", "outer"}}});
  const auto line = process.read_line(Deadline::after(60_s));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->text.find("outer:"), 0U) << line->text;
}

TEST(Process, SparesADaemonOutsideOfTheGroupWhenAsked) {
  Command command = shell(std::string(kDaemon) + "sleep 1000");
  command.kill_scope = KillScope::kGroup;
  pid_t daemon = 0;
  {
    Process process(std::move(command));
    daemon = std::stoi(process.read_line(Deadline::after(60_s)).value().text);
  }
  EXPECT_TRUE(alive(daemon));
  kill(-daemon, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !alive(daemon); }));
}

TEST(Process, DoesNotWaitForABackgroundChildThatHoldsTheOutput) {
  const Deadline deadline = Deadline::after(30_s);
  const Outcome outcome = run(shell("sleep 1000 & echo done"));
  EXPECT_EQ(outcome.out, "done\n");
  EXPECT_TRUE(outcome.ok());
  EXPECT_FALSE(deadline.expired());
}

TEST(Process, ResetsSignalsForTheProgram) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  sigset_t blocked, mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  const Outcome outcome = run({.argv = {"grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"}});
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGPIPE, &before, nullptr);
  // Signals 32 and 33 are the C library's own: it lets nobody touch them, and some parents leave them ignored.
  const std::regex none("SigBlk:\t0{16}\nSigIgn:\t0{7}[0-9a-f]{2}0{7}\n");
  EXPECT_TRUE(std::regex_match(outcome.out, none)) << outcome.out;
}

TEST(Process, LeavesOurDescriptorsToUs) {
  const UniqueFd ours = open_file("/dev/null", O_RDONLY);
  const UniqueFd high(fcntl(ours.get(), F_DUPFD_CLOEXEC, 50));
  const std::string listed = run({.argv = {"ls", "/proc/self/fd"}}).out;
  EXPECT_EQ(listed, "0\n1\n2\n3\n");  // 3 is the folder that it lists
}

TEST(Process, DropsOutputBeyondTheLimitAndReadsOn) {
  Command command = shell("head -c 1000000 /dev/zero; echo end >&2");
  command.output_limit = 1000_B;
  const Outcome outcome = run(command);
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.out.size(), 1000U);
  EXPECT_EQ(outcome.err, "end\n");
  EXPECT_TRUE(outcome.truncated);
  EXPECT_FALSE(run(shell("echo short")).truncated);
}

TEST(Process, DeliversLinesAsTheyCome) {
  const ScratchDir scratch;
  const std::string seen = (scratch.path() / "seen").native();
  std::vector<std::string> out, err;
  // The program goes on only after its first line was delivered.
  Command command = shell(
      "printf 'a\\n\\n\\377\\200b\\n'; while [ ! -e \"$SEEN\" ]; do sleep 0.01; done; "
      "echo err >&2; printf last");
  command.environment["SEEN"] = seen;
  command.output_limit = 0_B;
  command.on_line = [&](OutputStream stream, std::string_view line) {
    if (line == "a") write_file_atomically(seen, "");
    (stream == OutputStream::kOut ? out : err).emplace_back(line);
  };
  const Outcome outcome = run(command);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(out, (std::vector<std::string>{"a", "",
                                           "\xff\x80"
                                           "b",
                                           "last"}));
  EXPECT_EQ(err, (std::vector<std::string>{"err"}));
  EXPECT_EQ(outcome.out, "");
}

TEST(Process, PassesOnWhatTheLineReceiverThrows) {
  Command command = shell("echo $$; sleep 1000");
  pid_t child = 0;
  command.on_line = [&](OutputStream, std::string_view line) {
    child = std::stoi(std::string(line));
    throw Error(ErrorCode::kInterrupted, "enough");
  };
  EXPECT_ERROR(run(command), ErrorCode::kInterrupted, "enough");
  EXPECT_FALSE(alive(child));
}

TEST(Process, TalksWithALongLivedProgram) {
  Process process({.argv = {"sh", "-c", "while read -r line; do echo \"<$line>\"; done; echo bye >&2; exit 3"},
                   .input_mode = InputMode::kPipe});
  for (int i = 0; i < 100; ++i) {
    process.write(fmt::format("{}\n", i), Deadline::after(60_s));
    const auto line = process.read_line(Deadline::after(60_s));
    ASSERT_TRUE(line);
    EXPECT_EQ(line->text, fmt::format("<{}>", i));
  }
  EXPECT_FALSE(process.read_line(Deadline::after(20_ms)));
  EXPECT_FALSE(process.at_end());
  EXPECT_FALSE(process.wait(Deadline::after(20_ms)));
  process.close_input();
  const auto line = process.read_line(Deadline::after(60_s));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->stream, OutputStream::kErr);
  EXPECT_FALSE(process.read_line(Deadline::after(60_s)));
  EXPECT_TRUE(process.at_end());
  const auto outcome = process.wait(Deadline::after(60_s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->exit_status, 3);
  EXPECT_EQ(outcome->err, "");
}

TEST(Process, WritesWithADeadline) {
  Process process({.argv = {"sleep", "1000"}, .input_mode = InputMode::kPipe});
  EXPECT_ERROR(process.write(std::string(4 << 20, 'x'), Deadline::after(50_ms)), ErrorCode::kTimeout,
               "did not take its input in time");
}

TEST(Process, GivesBytesOfOneStream) {
  Process process(shell("printf abc; printf noise >&2; printf def"));
  std::string all;
  while (!process.at_end(OutputStream::kOut)) all += process.read_bytes(OutputStream::kOut, 2, Deadline::after(60_s));
  EXPECT_EQ(all, "abcdef");
  EXPECT_EQ(process.wait(Deadline::after(60_s)).value().err, "noise");
}

TEST(Process, ReportsWhetherThereIsOutput) {
  Process process({.argv = {"cat"}, .input_mode = InputMode::kPipe});
  EXPECT_FALSE(process.poll_output(Deadline::after(20_ms)));
  process.write("x", Deadline::after(60_s));
  EXPECT_TRUE(process.poll_output(Deadline::after(60_s)));
  EXPECT_EQ(process.read_bytes(OutputStream::kOut, 10, Deadline::after(60_s)), "x");
  process.close_input();
  EXPECT_TRUE(process.poll_output(Deadline::after(60_s)));
  EXPECT_TRUE(process.at_end());
}

TEST(Process, MovesWithItsPipes) {
  Process first({.argv = {"cat"}, .input = "short", .input_mode = InputMode::kPipe});
  Process second(std::move(first));
  second.write(" text\n", Deadline::after(60_s));
  EXPECT_EQ(second.read_line(Deadline::after(60_s)).value().text, "short text");
}

TEST(Process, RunsFromSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = fmt::format("{}.{}", t, i) + std::string(100'000, 'x');
        right += run({.argv = {"cat"}, .input = text}).out == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
}

TEST(Process, LeavesNoZombies) {
  run({.argv = {"true"}});
  { const Process process(shell("sleep 1000")); }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(LineBuffer, GivesLongLinesInPieces) {
  constexpr std::size_t kMax = LineBuffer::kMaxLine;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMax - 1, kMax, kMax + 1, 2 * kMax + 7}) {
    LineBuffer buffer;
    const std::string line(size, 'x');
    for (std::size_t at = 0; at < size; at += 65537) buffer.append(std::string_view(line).substr(at, 65537));
    buffer.append("\nnext\nrest");
    std::string joined;
    std::size_t pieces = 0;
    for (;;) {
      const auto piece = buffer.take_line(LineBuffer::More::kMayCome);
      ASSERT_TRUE(piece);
      if (*piece == "next") break;
      EXPECT_LE(piece->size(), kMax);
      joined += *piece;
      ++pieces;
    }
    EXPECT_EQ(joined, line) << size;
    EXPECT_EQ(pieces, size <= kMax ? 1 : (size + kMax - 1) / kMax) << size;
    EXPECT_FALSE(buffer.take_line(LineBuffer::More::kMayCome));
    EXPECT_EQ(buffer.take_line(LineBuffer::More::kNone), "rest");
    EXPECT_FALSE(buffer.take_line(LineBuffer::More::kNone));
  }
}

}  // namespace
}  // namespace yoke
