// An engine of threads, asked as run, chat and verify ask it.
#include "yoke/serve/client.h"

#include <gtest/gtest.h>

namespace yoke::serve {
namespace {

EngineHostSpec nano_on_threads() {
  return {.engine = {.model = std::filesystem::path(YOKE_SOURCE_DIR) / "models/nano", .threads = 1},
          .transport = rank::Transport::kThreads,
          .ranks = 2,
          .cluster = {}};
}

engine::Request greedy(std::int64_t tokens) {
  return {.prompt = {2043, 668, 617, 1455, 371, 1000, 30}, .answer_max = tokens, .sampling = {.temperature = 0}};
}

TEST(EngineClient, AsksOneRequestAfterTheOther) {
  bool loaded = false;
  EngineClient client(nano_on_threads(), {.on_load = [&](const engine::LoadProgress&) { loaded = true; }});
  EXPECT_TRUE(loaded);
  EXPECT_EQ(client.ready().ranks, 2);
  EXPECT_TRUE(describe(client.ready()).starts_with("2 ranks on ")) << describe(client.ready());
  EXPECT_GT(client.load_time().value, 0);
  std::vector<text::TokenId> streamed;
  const CompletedAnswer first = client.ask(greedy(4), {.on_token = [&](const text::SampledToken& token) {
                                             streamed.push_back(token.id);
                                             return true;
                                           }});
  ASSERT_EQ(first.tokens.size(), 4U);
  EXPECT_EQ(streamed.size(), 4U);
  EXPECT_EQ(first.finish, engine::FinishReason::kLength);
  EXPECT_GT(first.prefill.value, 0);
  EXPECT_GT(first.prefill_rate(7), 0);
  EXPECT_GT(first.decode_rate(), 0);
  const CompletedAnswer second = client.ask(greedy(4), {});
  ASSERT_EQ(second.tokens.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(second.tokens[i].id, first.tokens[i].id);
  EXPECT_TRUE(client.recoveries().empty());
}

TEST(EngineClient, EndsAnAnswerThatIsEnough) {
  EngineClient client(nano_on_threads(), {});
  int seen = 0;
  const CompletedAnswer answer =
      client.ask(greedy(200), {.on_token = [&](const text::SampledToken&) { return ++seen < 2; }});
  EXPECT_EQ(answer.tokens.size(), 2U);
  EXPECT_EQ(answer.finish, engine::FinishReason::kStop);
  EXPECT_FALSE(answer.interrupted);
}

TEST(EngineClient, GoesOnAfterARequestThatIsRefused) {
  EngineClient client(nano_on_threads(), {});
  engine::Request wrong = greedy(1);
  wrong.prompt = {1'000'000};
  const auto refused = client.try_ask(wrong, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(client.ask(greedy(1), {}).tokens.size(), 1U);
}

TEST(EngineClient, ReportsHowMuchOfThePromptWasRead) {
  EngineClient client(nano_on_threads(), {});
  engine::Request request = greedy(1);
  request.prompt.assign(400, 668);
  std::vector<std::int64_t> read;
  client.ask(request, {.on_reading = [&](std::int64_t tokens) { read.push_back(tokens); }});
  ASSERT_FALSE(read.empty());
  EXPECT_TRUE(std::is_sorted(read.begin(), read.end()));
  EXPECT_LE(read.back(), 400);
}

}  // namespace
}  // namespace yoke::serve
