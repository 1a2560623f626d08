// A conversation, through a pipe and in a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine_fixture.h"
#include "tests/terminal.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

struct Chat : EngineTest {};

TEST_F(Chat, EachLineOfAPipeIsATurn) {
  const Outcome outcome =
      yoke({"chat", kNano}, kQuestion + "\n/stats\n\nWhat is the 13 Gb/s state?\n/dance\n/quit\nno\n");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith(kAnswer + "\nThe 13 Gb/s state"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2);
  EXPECT_THAT(outcome.err, HasSubstr("of 2048 tokens of context"));
  EXPECT_THAT(outcome.err, HasSubstr("there is no command /dance"));
}

TEST_F(Chat, AnswersAreLinesOfJsonForPrograms) {
  const Outcome outcome = yoke({"chat", kNano, "--json"}, kQuestion + "\n" + kQuestion + "\n");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  const std::vector<std::string> lines = split(outcome.out, '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(parse_json(lines[0], "a line").find("text")->text, kAnswer);
  EXPECT_EQ(parse_json(lines[0], "a line").find("prompt_tokens")->text, "10");
  EXPECT_GT(from_json<int>(*parse_json(lines[1], "a line").find("prompt_tokens")), 40) << "the first turn counts";
}

TEST_F(Chat, AFullContextForgetsTheOldestTurnsAndSaysSo) {
  std::string input;
  for (int i = 0; i < 6; ++i) input += kQuestion + "\n";
  const Outcome outcome = yoke({"chat", kNano, "--context", "120", "-n", "30"}, input);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  const std::string reported = "the context of 120 tokens is full: from now on the oldest turns are forgotten";
  const std::size_t at = outcome.err.find(reported);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("the context", at + 1), std::string::npos) << "once";
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 6);
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
  terminal.type("/stats\n");  // something in between: it counts again
  ASSERT_TRUE(terminal.shows("1 rank")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("Ctrl-C again ends the chat")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
}

TEST_F(Chat, TheFirstLineShowsWhatRunsWhere) {
  Terminal terminal(scratch.path(), {"chat"});
  ASSERT_TRUE(terminal.shows("nano: ")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("context of 2048 tokens, 1 rank on")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("/bye\n");
  EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
}

TEST_F(Chat, ALineIsEditedAndRememberedForTheNextChat) {
  {
    Terminal terminal(scratch.path(), {"chat", kNano});
    ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
    terminal.type(
        "Which cagle\x1b[D\x1b[D\x7f"
        "b\x1b[F joins two units?\r");  // left, left, erase, b, end
    ASSERT_TRUE(terminal.shows("One QSFP cable")) << terminal.screen();
    ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
    terminal.type("\xc3\xbc\x7f/stats\r");  // one erase takes the whole character
    ASSERT_TRUE(terminal.shows("tokens of context")) << terminal.screen();
    ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
    terminal.type("\x04");
    EXPECT_EQ(terminal.exit_status(), 0) << terminal.screen();
  }
  Terminal terminal(scratch.path(), {"chat", kNano});
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("\x1b[A\x1b[A");  // up, up
  ASSERT_TRUE(terminal.shows(kQuestion)) << terminal.screen();
  terminal.type("\r");
  ASSERT_TRUE(terminal.shows("One QSFP cable")) << terminal.screen();
}

TEST_F(Chat, SeveralLinesAreOneMessage) {
  Terminal terminal(scratch.path(), {"chat", kNano});
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("\x1b[200~Which cable\rjoins two units?\r\x1b[201~\r");
  ASSERT_TRUE(terminal.shows("One QSFP")) << "pasted: " << terminal.screen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("\"\"\"Which cable\r");
  ASSERT_TRUE(terminal.shows("... ")) << terminal.screen();
  terminal.type("joins two units?\"\"\"\r");
  ASSERT_TRUE(terminal.shows("One QSFP")) << "between quotes: " << terminal.screen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("/show\r");
  ASSERT_TRUE(terminal.shows("messages            4")) << "two questions and two answers: " << terminal.screen();
}

TEST_F(Chat, AnswersBreakBetweenWords) {
  Terminal terminal(scratch.path(), {"chat", kNano}, {.columns = 40});
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type(kQuestion + "\r");
  ASSERT_TRUE(
      terminal.shows("One QSFP cable (200G direct-attach\r\ncopper) joins two Sparks, in the same\r\nport on both."))
      << terminal.screen();
}

TEST_F(Chat, SettingsAndConversationsAreKept) {
  const std::string file = scratch.path() / "talk.json";
  const Outcome saved = yoke({"chat"}, "/set top-k 40\n/set temperature 0\n/set nosuch 1\n" + kQuestion +
                                           "\n/retry\n/show\n/set stats on\n/save talk.json\n");
  EXPECT_EQ(saved.exit_status, 2) << "told where a command of a pipe failed; " << saved.err;
  EXPECT_THAT(saved.out, StartsWith(kAnswer + "\n" + kAnswer + "\n"));
  EXPECT_THAT(saved.out, HasSubstr("top-k               40\n"));
  EXPECT_THAT(saved.out, HasSubstr("messages            2\n"));
  EXPECT_THAT(saved.err, HasSubstr("there is no setting 'nosuch'"));
  EXPECT_THAT(saved.err, HasSubstr("the temperature is 0, so the answer is the same again"));
  EXPECT_EQ(parse_json(read_file(file), "file").find("messages")->items.size(), 2U);
  const Outcome loaded = yoke({"chat"}, "/load talk.json\n/show\n/system Be short.\n/load none.json\n");
  EXPECT_THAT(loaded.out, HasSubstr("messages            2\n")) << loaded.err;
  EXPECT_THAT(loaded.err, HasSubstr("the chat template of this model drops system messages"));
  EXPECT_THAT(loaded.err, HasSubstr("none.json"));
  EXPECT_EQ(loaded.exit_status, 5);
}

// The process that runs as another rank for this program; below it in the tree of processes.
std::optional<pid_t> find_rank_below(pid_t program) {
  const auto field = [](const fs::path& stat, int number) {
    const Result<std::string> text = try_to([&] { return read_file(stat); });
    if (!text) return std::string();
    const std::vector<std::string> fields = split(text->substr(text->rfind(')') + 2), ' ');
    return fields.at(static_cast<std::size_t>(number - 3));
  };
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const Result<std::string> line = try_to([&] { return read_file(entry.path() / "cmdline"); });
    if (!line || line->find(std::string("rank\0engine", 11)) == std::string::npos) continue;
    for (std::string above = name; above.size() > 0 && above != "0" && above != "1";) {
      above = field(fs::path("/proc") / above / "stat", 4);
      if (above == std::to_string(program)) return std::stoi(name);
    }
  }
  return std::nullopt;
}

TEST_F(Chat, ANoticeLeavesTheLineThatIsBeingTyped) {
  Terminal terminal(scratch.path(), {"chat", kNano, "--ranks", "2"});
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("Which cab");
  ASSERT_TRUE(terminal.shows("Which cab")) << terminal.screen();
  const auto rank = find_rank_below(terminal.pid());
  ASSERT_TRUE(rank);
  ASSERT_EQ(kill(*rank, SIGKILL), 0);
  ASSERT_TRUE(terminal.shows("yoke: rank ")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> Which cab")) << "below the notice: " << terminal.screen();
  terminal.type("le joins two units?\r");
  ASSERT_TRUE(terminal.shows("One QSFP")) << terminal.screen();
}

}  // namespace
}  // namespace yoke::tests
