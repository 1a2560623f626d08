#include "yoke/remote/ssh_frame.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::remote {
namespace {

const FrameTokens kTokens{"0123456789abcdef", "fedcba"};
const std::string kBegin =
    "\x1e"
    "0123456789abcdef>42\n";
std::string end_mark(const std::string& what) {
  return "\x1e"
         "0123456789abcdef<" +
         what + "\n";
}

// In pieces of this size, as a network would.
std::string read_all(FrameReader& reader, const std::string& data, std::size_t piece) {
  std::string out;
  for (std::size_t at = 0; at < data.size(); at += piece) out += reader.take(std::string_view(data).substr(at, piece));
  return out + reader.finish();
}

TEST(SshFrame, GivesOnlyWhatStandsBetweenTheMarks) {
  for (std::size_t piece = 1; piece < 60; ++piece) {
    FrameReader reader(kTokens, FrameReader::Ends::kByMark);
    EXPECT_EQ(read_all(reader,
                       "noise\nmore" + kBegin +
                           "the \x1e"
                           "0123 text" +
                           end_mark("255") + "after\n",
                       piece),
              "the \x1e"
              "0123 text");
    EXPECT_TRUE(reader.began());
    EXPECT_EQ(reader.process_number(), "42");
    EXPECT_EQ(reader.end(), FrameReader::End::kStatus);
    EXPECT_EQ(reader.status(), 255);
  }
}

TEST(SshFrame, ReportsThatTheProgramNeverStarted) {
  FrameReader reader(kTokens, FrameReader::Ends::kByMark);
  EXPECT_EQ(read_all(reader, "This account is not available.\n", 7), "");
  EXPECT_FALSE(reader.began());
  EXPECT_EQ(reader.noise(), "This account is not available.\n");
}

TEST(SshFrame, CountsWhatComesBeforeTheStart) {
  FrameReader reader(kTokens, FrameReader::Ends::kByMark);
  for (int i = 0; i < 1000; ++i) reader.take(std::string(1000, 'x'));
  EXPECT_EQ(reader.noise_size(), 1'000'000U);
  EXPECT_LE(reader.noise().size(), 64U << 10U) << "and keeps the last of it";
  reader.take(kBegin);
  EXPECT_EQ(reader.noise_size(), 0U);
}

TEST(SshFrame, TakesOnlyANumberForAProcess) {
  FrameReader reader(kTokens, FrameReader::Ends::kByMark);
  EXPECT_ERROR(reader.take("\x1e"
                           "0123456789abcdef>1 2; reboot\n"),
               ErrorCode::kInvalid, "where a process number belongs");
}

// A node that never ends the line of the end mark must not fill memory, nor what follows a false one be the program's.
TEST(SshFrame, HoldsNothingBehindAnEndMarkThatIsNone) {
  for (const std::string& mark : {std::string("<"), std::string("<nonsense\n")}) {
    FrameReader reader(kTokens, FrameReader::Ends::kByMark);
    EXPECT_EQ(reader.take(kBegin + "text\x1e" + "0123456789abcdef" + mark), "text");
    for (int i = 0; i < 100; ++i) EXPECT_EQ(reader.take(std::string(1000, 'x')), "");
    EXPECT_EQ(reader.finish(), "");
    EXPECT_EQ(reader.end(), FrameReader::End::kNone);
  }
}

TEST(SshFrame, ReportsThatTheEndIsMissing) {
  FrameReader reader(kTokens, FrameReader::Ends::kByMark);
  EXPECT_EQ(read_all(reader,
                     kBegin + "rail\x1e"
                              "0123",
                     3),
            "rail\x1e"
            "0123");
  EXPECT_TRUE(reader.began());
  EXPECT_EQ(reader.end(), FrameReader::End::kNone);
}

TEST(SshFrame, HoldsNothingBackThatIsNoMark) {
  FrameReader reader(kTokens, FrameReader::Ends::kByMark);
  reader.take(kBegin);
  EXPECT_EQ(reader.take("prompt> "), "prompt> ");
  EXPECT_EQ(reader.take("line\n"), "line\n");
  FrameReader binary(kTokens, FrameReader::Ends::kWithStream);
  binary.take(kBegin);
  EXPECT_EQ(binary.take("data\x1e"), "data\x1e");
}

TEST(SshFrame, RecognizesAMissingProgramByItsStatus) {
  for (const auto& [text, end] :
       {std::pair("program", FrameReader::End::kNoProgram), std::pair("folder", FrameReader::End::kNoFolder)}) {
    FrameReader reader(kTokens, FrameReader::Ends::kByMark);
    read_all(reader, kBegin + end_mark(text), 5);
    EXPECT_EQ(reader.end(), end);
  }
}

TEST(SshFrame, KeepsItsMarksOffTheCommandLine) {
  const FrameTokens tokens = make_frame_tokens();
  EXPECT_EQ(framed_command({.argv = {"ps"}}, tokens).find(tokens.mark), std::string::npos);
}

TEST(SshFrame, RefusesWhatNoShellCanRun) {
  const FrameTokens tokens = make_frame_tokens();
  EXPECT_ERROR(framed_command({.argv = {"-x"}}, tokens), ErrorCode::kInvalid, "cannot be run by a shell");
  EXPECT_ERROR(framed_command({.argv = {""}}, tokens), ErrorCode::kInvalid, "cannot be run by a shell");
  EXPECT_ERROR(framed_command({.argv = {"a"}, .environment = {{"no name", "x"}}}, tokens), ErrorCode::kInvalid,
               "'no name' is no name of a variable");
}

Outcome in_real_shell(const Command& command, FrameReader& out, FrameReader& err, const FrameTokens& tokens) {
  Outcome outcome =
      run({.argv = {"sh", "-c", "echo noise; echo noise >&2; " + framed_command(command, tokens)}, .timeout = {60}});
  outcome.out = read_all(out, outcome.out, 17);
  outcome.err = read_all(err, outcome.err, 17);
  return outcome;
}

TEST(SshFrame, RunsInARealShell) {
  const FrameTokens tokens = make_frame_tokens();
  FrameReader out(tokens, FrameReader::Ends::kWithStream), err(tokens, FrameReader::Ends::kByMark);
  const Outcome outcome =
      in_real_shell({.argv = {"sh", "-c", "printf \"$1\"; echo $X; pwd; printf e >&2; exit 9", "sh", "a\\n"},
                     .environment = {{"X", "it's"}},
                     .folder = "/"},
                    out, err, tokens);
  EXPECT_EQ(outcome.out, "a\nit's\n/\n");
  EXPECT_EQ(outcome.err, "e");
  EXPECT_EQ(err.status(), 9);
  EXPECT_EQ(outcome.exit_status, 9);
}

// "kill -KILL -1" is the end of all processes of a user.
TEST(SshFrame, EndsNoOtherGroupThanTheOneOfTheProgram) {
  const FrameTokens tokens = make_frame_tokens();
  EXPECT_NE(ending_command("4711", tokens).find("kill -KILL -4711 "), std::string::npos);
  for (const char* number : {"0", "1", "0001", "18446744073709551615", "4294967297"}) {
    const std::string script = ending_command(number, tokens);
    EXPECT_EQ(script.find("kill -TERM"), std::string::npos) << number << ": " << script;
    EXPECT_EQ(script.find("kill -KILL"), std::string::npos) << number << ": " << script;
    EXPECT_NE(script.find(tokens.process), std::string::npos) << "what has our environment is ended all the same";
  }
}

RC_GTEST_PROP(SshFrame, CarriesAnyArgumentThroughARealShell, ()) {
  const auto any = rc::gen::map(rc::gen::inRange(1, 256), [](int c) { return static_cast<char>(c); });
  const auto word = *rc::gen::container<std::string>(any);
  const FrameTokens tokens = make_frame_tokens();
  FrameReader out(tokens, FrameReader::Ends::kWithStream), err(tokens, FrameReader::Ends::kByMark);
  RC_ASSERT(in_real_shell({.argv = {"printf", "%s", word}}, out, err, tokens).out == word);
}

}  // namespace
}  // namespace yoke::remote
