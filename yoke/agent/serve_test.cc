// The agent over pipes, with the test as its head.
#include "yoke/agent/serve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

#include "yoke/agent/agent_frame.h"
#include "yoke/base/files.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"

namespace yoke::agent {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)

struct Counter {
  std::atomic<int> value{0};
};

Document echo(const Document& question, AgentContext&) { return question; }
Document fail(const Document&, AgentContext&) {
  throw Error(ErrorCode::kNotFound, "there is none", "look elsewhere").in("looking");
}
Document count(const Document&, AgentContext& context) {
  return Document::number(std::int64_t{++context.state<Counter>().value});
}
Document wait_a_while(const Document&, AgentContext& context) {
  context.progress("waiting");
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  return Document::string("waited");
}
Command run_cat(const Document&) { return {.argv = {"cat"}, .input_mode = InputMode::kPipe}; }
Command run_script(const Document& question) {
  return {.argv = {"sh", "-c", question.text}, .input_mode = InputMode::kPipe};
}

constexpr std::array kTestActions = {
    AgentAction{.name = "echo", .answer = echo},
    AgentAction{.name = "fail", .answer = fail},
    AgentAction{.name = "count", .answer = count},
    AgentAction{.name = "wait", .answer = wait_a_while},
    AgentAction{.name = "root-only", .rights = AgentRights::kRoot, .answer = echo},
    AgentAction{.name = "cat", .program = run_cat},
    AgentAction{.name = "sh", .program = run_script},
};

class Agent : public ::testing::Test {
 protected:
  Agent() {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw system_error(errno, "no pipes");
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    served_ = std::async(std::launch::async, [in = UniqueFd(in[0]), out = UniqueFd(out[1])] {
      return serve_actions(kTestActions, in.get(), out.get());
    });
    EXPECT_EQ(next().kind, FrameKind::kHello);
  }
  ~Agent() override { end(); }

  int end() {
    to_.reset();
    return served_.valid() ? served_.get() : -1;
  }

  void send(const AgentFrame& frame) { write_all(to_, encode(frame), "the agent"); }
  void ask(std::uint32_t id, std::string_view action, const Document& question = Document::null()) {
    send(question_frame(id, action, question));
  }

  AgentFrame next() {
    for (;;) {
      if (auto frame = reader_.next()) return *std::move(frame);
      pollfd waiting{from_.get(), POLLIN, 0};
      char buffer[4096];
      const ssize_t size = poll(&waiting, 1, 20'000) > 0 ? read(from_.get(), buffer, sizeof buffer) : 0;
      if (size <= 0) throw Error(ErrorCode::kTimeout, "nothing came");
      reader_.feed({buffer, static_cast<std::size_t>(size)});
    }
  }
  AgentFrame next_but_heartbeats() {
    AgentFrame frame = next();
    while (frame.kind == FrameKind::kHeartbeat) frame = next();
    return frame;
  }

  UniqueFd to_, from_;
  AgentFrameReader reader_;
  std::future<int> served_;
};

TEST_F(Agent, AnswersWithTheNumberOfTheQuestion) {
  const Document question = Document::map({{"a", Document::string("b")}});
  ask(42, "echo", question);
  const AgentFrame answer = next_but_heartbeats();
  EXPECT_EQ(answer.id, 42U);
  EXPECT_EQ(read_answer(answer, "test"), question);
  EXPECT_EQ(end(), 0);
}

TEST_F(Agent, ReportsWhatAnActionThrows) {
  ask(1, "fail");
  const AgentFrame frame = next_but_heartbeats();
  ASSERT_EQ(frame.kind, FrameKind::kError);
  const auto answer = try_to([&] { return read_answer(frame, "test"); });
  EXPECT_EQ(answer.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(answer.error().hint(), "look elsewhere");
  EXPECT_EQ(answer.error().context(), std::vector<std::string>{"looking"});
}

TEST_F(Agent, RefusesAnActionThatItHasNot) {
  ask(9, "dance");
  const AgentFrame frame = next_but_heartbeats();
  EXPECT_EQ(frame.id, 9U);
  const auto answer = try_to([&] { return read_answer(frame, "test"); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message(), "'dance' is no action of an agent");
}

TEST_F(Agent, KeepsStateBetweenQuestions) {
  for (const char* expected : {"1", "2"}) {
    ask(1, "count");
    EXPECT_EQ(read_answer(next_but_heartbeats(), "test").text, expected);
  }
}

TEST_F(Agent, AnswersOthersWhileOneTakesLongAndShowsThatItLives) {
  ask(1, "wait");
  EXPECT_EQ(next_but_heartbeats(), (AgentFrame{FrameKind::kProgress, 1, "waiting"}));
  ask(2, "echo", Document::string("quick"));
  EXPECT_EQ(read_answer(next_but_heartbeats(), "test").text, "quick");
  bool heartbeat = false;
  AgentFrame frame = next();
  for (; frame.kind == FrameKind::kHeartbeat; frame = next()) {
    heartbeat = true;
    EXPECT_NEAR(read_time(frame), agent_clock_now(), 60);
  }
  EXPECT_TRUE(heartbeat);
  EXPECT_EQ(frame.id, 1U);
  EXPECT_EQ(read_answer(frame, "test").text, "waited");
}

TEST_F(Agent, CarriesTheStreamsOfAProgramAndItsEnd) {
  ask(3, "cat");
  send({FrameKind::kBytes, 3, "hello"});
  EXPECT_EQ(read_output(next_but_heartbeats()).bytes, "hello");
  send({FrameKind::kBytes, 3, {}});  // closes its input
  EXPECT_EQ(print_json(read_answer(next_but_heartbeats(), "test"), JsonLayout::kOneLine), R"({"exit_status":0})");
  ask(4, "sh", Document::string("echo no >&2; exit 3"));
  const AgentOutput output = read_output(next_but_heartbeats());
  EXPECT_EQ(output.stream, OutputStream::kErr);
  EXPECT_EQ(output.bytes, "no\n");
  EXPECT_EQ(print_json(read_answer(next_but_heartbeats(), "test"), JsonLayout::kOneLine), R"({"exit_status":3})");
}

TEST_F(Agent, StopsAProgramThatIsToStop) {
  ask(5, "sh", Document::string("echo $$; exec sleep 1000"));
  const std::string pid = read_output(next_but_heartbeats()).bytes;
  send({FrameKind::kStop, 5, {}});
  EXPECT_EQ(print_json(read_answer(next_but_heartbeats(), "test"), JsonLayout::kOneLine), R"({"exit_status":143})");
  EXPECT_EQ(kill(std::stoi(pid), 0), -1);
}

TEST_F(Agent, AProgramThatIsNotThereIsAnErrorOfItsChannel) {
  send({FrameKind::kQuestion, 6, R"({"action":"sh"})"});
  EXPECT_EQ(next_but_heartbeats().kind, FrameKind::kError);
}

TEST_F(Agent, EndsItsProgramsAndItselfWithItsInput) {
  ask(7, "sh", Document::string("cat > /dev/null; echo done"));
  const AgentFrame before = {FrameKind::kBytes, 7, "x"};
  send(before);
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(read_output(next_but_heartbeats()).bytes, "done\n");
}

TEST_F(Agent, EndsWhereWhatComesIsNoFrame) {
  write_all(to_, "GET / HTTP/1.1\r\n", "the agent");
  const AgentFrame frame = next_but_heartbeats();
  EXPECT_EQ(frame.kind, FrameKind::kError);
  EXPECT_EQ(frame.id, 0U);
  EXPECT_EQ(served_.get(), info(ErrorCode::kInvalid).exit_status);
}

TEST_F(Agent, AnActionThatNeedsRootIsRefusedWithoutIt) {
  ask(8, "root-only", Document::string("x"));
  const AgentFrame frame = next_but_heartbeats();
  const auto answer = try_to([&] { return read_answer(frame, "test"); });
  if (geteuid() == 0) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->text, "x");
  } else {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::kPermission);
    EXPECT_EQ(answer.error().message(), "'root-only' needs root");
  }
}

}  // namespace
}  // namespace yoke::agent
