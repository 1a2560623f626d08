// A conversation, through a pipe and in a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine_fixture.h"
#include "tests/terminal.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Chat : EngineTest {};

TEST_F(Chat, EachLineOfAPipeIsATurn) {
  const Outcome outcome =
      yoke({"chat", kNano}, kQuestion + "\n/stats\n\nWhat is the 13 Gb/s state?\n/dance\n/quit\nno\n");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith(kAnswer + "\nThe 13 Gb/s state"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2);
  EXPECT_THAT(outcome.err, HasSubstr("of 1024 tokens of context"));
  EXPECT_THAT(outcome.err, HasSubstr("there is no command /dance"));
}

TEST_F(Chat, AnswersAreLinesOfJsonForPrograms) {
  const Outcome outcome = yoke({"chat", kNano, "--json"}, kQuestion + "\n" + kQuestion + "\n");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  const std::vector<std::string> lines = split(outcome.out, '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(parse_json(lines[0], "a line").find("text")->text, kAnswer);
  EXPECT_EQ(parse_json(lines[0], "a line").find("prompt_tokens")->text, "10");
  EXPECT_GT(from_document<int>(*parse_json(lines[1], "a line").find("prompt_tokens")), 40) << "the first turn counts";
}

TEST_F(Chat, AFullContextForgetsTheOldestTurnsAndSaysSo) {
  std::string input;
  for (int i = 0; i < 4; ++i) input += kQuestion + "\n";
  const Outcome outcome = yoke({"chat", kNano, "--context", "120", "-n", "30"}, input);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the context of 120 tokens is full: the oldest turn is forgotten"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4);
}

TEST_F(Chat, AMessageThatIsWrongEndsNothing) {
  const Outcome outcome =
      yoke({"chat", kNano, "--context", "64"}, "\xff\n" + std::string(2000, 'x') + "\n" + kQuestion + "\n");
  EXPECT_EQ(outcome.exit_status, 4) << "told where a turn of a pipe failed; " << outcome.err;
  EXPECT_EQ(outcome.out, kAnswer + "\n");
  EXPECT_THAT(outcome.err, HasSubstr("the message is not UTF-8"));
  EXPECT_THAT(outcome.err, HasSubstr("room for 64"));
}

TEST_F(Chat, EveryTurnOfAProgramIsAnsweredAlsoByAnError) {
  const Outcome outcome = yoke({"chat", kNano, "--json", "--context", "64", "-n", "5"},
                               "\xff\n" + std::string(2000, 'x') + "\n/quit\n/help\n" + kQuestion + "\n");
  EXPECT_EQ(outcome.exit_status, 4) << outcome.err;
  const std::vector<std::string> lines = split(outcome.out, '\n');
  ASSERT_EQ(lines.size(), 6U) << outcome.out;
  for (int i = 0; i < 2; ++i) {
    const Document turn = parse_json(lines[i], "a line");
    ASSERT_TRUE(turn.find("error")) << lines[i];
    EXPECT_EQ(turn.find("error")->find("code")->text, "invalid");
  }
  for (int i = 2; i < 5; ++i) EXPECT_TRUE(parse_json(lines[i], "a line").find("text")) << "no command: " << lines[i];
}

class ChatTerminal : public EngineTest, public testing::WithParamInterface<const char*> {};
TEST_P(ChatTerminal, CtrlCStopsTheAnswerAndNotTheProgram) {
  Terminal terminal(scratch.path(), {"chat", kNano, "--ranks", GetParam(), "-n", "900", "--logit-bias", "2044=-inf"});
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type(kQuestion + "\n");
  ASSERT_TRUE(terminal.shows("One QSFP")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("/stats\n");
  ASSERT_TRUE(terminal.shows("tokens of context")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type(kQuestion + "\n");
  ASSERT_TRUE(terminal.shows("QSFP")) << "it still answers: " << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("\x04");
  EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
}
INSTANTIATE_TEST_SUITE_P(Ranks, ChatTerminal, testing::Values("1", "2"));

TEST_F(Chat, CtrlCTwiceAtThePromptEndsIt) {
  Terminal terminal(scratch.path(), {"chat", kNano});
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("Ctrl-C again ends the chat")) << terminal.screen();
  terminal.type("/stats\n");  // something in between: it counts anew
  ASSERT_TRUE(terminal.shows("1 rank")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("Ctrl-C again ends the chat")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
}

}  // namespace
}  // namespace yoke
