#include "yoke/chat/conversation.h"

#include <gtest/gtest.h>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"

namespace yoke::chat {
namespace {

TEST(Conversation, ComesBackFromItsFileAsItWas) {
  const ScratchDir scratch;
  const Conversation said{
      .model = "nano", .system = "Be short.", .messages = {{"user", "one\n\"two\""}, {"assistant", "Hello!"}}};
  save_conversation(scratch.path() / "c.json", said);
  EXPECT_EQ(load_conversation(scratch.path() / "c.json"), said);
  EXPECT_ERROR(save_conversation(scratch.path() / "c.json", said), ErrorCode::kConflict, "exists already");
}

TEST(Conversation, IsRefusedWhereTurnsAreMissing) {
  EXPECT_ERROR(parse_conversation(R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})", "c.json"),
               ErrorCode::kInvalid, "c.json: the last message has no answer");
  EXPECT_ERROR(parse_conversation(R"({"model": "m", "messages": [{"role": "system", "content": "x"}]})", "c.json"),
               ErrorCode::kInvalid, "a message of 'system' where one of user should be");
}

TEST(Settings, ChangeOneArgumentAndTakeItBack) {
  SamplingArguments arguments;
  EXPECT_EQ(set_sampling(arguments, "temperature", "0.8"), "temperature is 0.8 from the next answer on");
  EXPECT_EQ(arguments.temperature, 0.8);
  set_sampling(arguments, "top-k", "40");
  EXPECT_EQ(arguments.top_k, 40);
  set_sampling(arguments, "temperature", "default");
  EXPECT_EQ(arguments.temperature, std::nullopt);
  EXPECT_ERROR(set_sampling(arguments, "temprature", "1"), ErrorCode::kUsage, "there is no setting 'temprature'",
               "did you mean 'temperature'?");
  EXPECT_ERROR(set_sampling(arguments, "seed", "x"), ErrorCode::kUsage, "'x' is no number for seed");
}

}  // namespace
}  // namespace yoke::chat
