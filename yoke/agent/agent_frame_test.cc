#include "yoke/agent/agent_frame.h"

#include <gtest/gtest.h>

#include "yoke/base/result.h"

namespace yoke::agent {
namespace {

Error refusal_of(std::string_view bytes) {
  AgentFrameReader reader;
  reader.feed(bytes);
  const auto frame = try_to([&] { return reader.next(); });
  if (!frame) return frame.error();
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, ""};
}

TEST(AgentFrame, ReadsBackWhatWasWrittenInPiecesOfAnySize) {
  const std::vector<AgentFrame> sent = {
      {FrameKind::kBytes, 7, std::string("\0\xff\n", 3)},
      {FrameKind::kBytes, 0xFFFFFFFF, ""},
      question_frame(1, "probe", Document::map({{"a", Document::number(std::int64_t{1})}})),
      {FrameKind::kStop, 0, {}}};
  std::string bytes;
  for (const AgentFrame& frame : sent) bytes += encode(frame);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{13}, std::size_t{17}, bytes.size()}) {
    AgentFrameReader reader;
    std::vector<AgentFrame> received;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      reader.feed(bytes.substr(i, piece));
      while (auto frame = reader.next()) received.push_back(*frame);
    }
    EXPECT_EQ(received, sent) << "pieces of " << piece;
  }
}

TEST(AgentFrame, RefusesWhatIsNoFrame) {
  EXPECT_EQ(refusal_of("Welcome to spark-2\n").code(), ErrorCode::kInvalid);
  EXPECT_EQ(refusal_of("Welcome").message(), "what came is no message of yoke's: 'Welcome'");
  std::string large = encode({FrameKind::kBytes, 1, "x"});
  large[7] = '\x7f';  // of the length's highest byte
  EXPECT_EQ(refusal_of(large).message(), "a message of 2130706433 bytes came; 16777216 is the most");
  std::string odd = encode({FrameKind::kBytes, 1, "x"});
  odd[8] = '\x09';
  EXPECT_EQ(refusal_of(odd).message(), "a message of unknown type 9 came");
  odd[8] = '\0';
  EXPECT_EQ(refusal_of(odd).message(), "a message of unknown type 0 came");
}

TEST(AgentFrame, CarriesAnErrorWithItsCodeHintAndContext) {
  const Error error = Error(ErrorCode::kExhausted, "no room", "make some").in("writing").in("on spark-2");
  const auto answer = try_to([&] { return read_answer(error_frame(3, error), "there"); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kExhausted);
  EXPECT_EQ(answer.error().message(), "no room");
  EXPECT_EQ(answer.error().hint(), "make some");
  EXPECT_EQ(answer.error().context(), (std::vector<std::string>{"writing", "on spark-2"}));
}

TEST(AgentFrame, AQuestionThatLacksAFieldIsAnError) {
  const auto question = try_to([] { return read_question({FrameKind::kQuestion, 1, R"({"action":"probe"})"}); });
  ASSERT_FALSE(question);
  EXPECT_EQ(question.error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(question.error().message(), "question lacks 'question'");
  const auto error = try_to([] { return read_answer({FrameKind::kError, 1, R"({"code":"invalid"})"}, "spark-2"); });
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code(), ErrorCode::kInvalid);
  EXPECT_NE(error.error().message().find("spark-2"), std::string::npos);
}

TEST(AgentFrame, OutputNamesItsStream) {
  const AgentOutput output = read_output(output_frame(5, OutputStream::kErr, "oops"));
  EXPECT_EQ(output.stream, OutputStream::kErr);
  EXPECT_EQ(output.bytes, "oops");
  for (const char* payload : {"", "\x03x"}) {
    const auto refused = try_to([&] { return read_output(AgentFrame{FrameKind::kBytes, 5, payload}); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "output of no stream came");
  }
}

TEST(AgentFrame, ReportsTheSendersClock) {
  EXPECT_DOUBLE_EQ(read_time(time_frame(FrameKind::kHello, 1763300000.25)), 1763300000.25);
}

}  // namespace
}  // namespace yoke::agent
