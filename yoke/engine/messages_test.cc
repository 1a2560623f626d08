#include "yoke/engine/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
T through_client(const ClientMessage& message) {
  EngineMessageReader reader;
  reader.feed(encode(message));
  return std::get<T>(reader.next_client_message().value());
}

template <class T>
T through(const EngineEvent& event) {
  EngineMessageReader reader;
  reader.feed(encode(event));
  return std::get<T>(reader.next_event().value());
}

float any_float() {
  return *rc::gen::oneOf(rc::gen::arbitrary<float>(), rc::gen::element(0.0F, -0.0F, kInfinity, -kInfinity, 1e-45F,
                                                                       std::numeric_limits<float>::max()));
}

text::SamplingOptions any_sampling() {
  text::SamplingOptions options{.temperature = any_float(),
                                .top_k = *rc::gen::arbitrary<int>(),
                                .top_p = any_float(),
                                .min_p = any_float(),
                                .repetition_penalty = any_float(),
                                .frequency_penalty = any_float(),
                                .presence_penalty = any_float(),
                                .logit_bias = {},
                                .seed = *rc::gen::arbitrary<std::uint64_t>(),
                                .logprobs = {}};
  if (*rc::gen::arbitrary<bool>()) options.logprobs = *rc::gen::arbitrary<int>();
  for (const text::TokenId id : *rc::gen::arbitrary<std::vector<text::TokenId>>())
    options.logit_bias.push_back({id, any_float()});
  return options;
}

void expect_same(const text::SamplingOptions& a, const text::SamplingOptions& b) {
  RC_ASSERT(a.temperature == b.temperature);
  RC_ASSERT(a.top_k == b.top_k);
  RC_ASSERT(a.top_p == b.top_p);
  RC_ASSERT(a.min_p == b.min_p);
  RC_ASSERT(a.repetition_penalty == b.repetition_penalty);
  RC_ASSERT(a.frequency_penalty == b.frequency_penalty);
  RC_ASSERT(a.presence_penalty == b.presence_penalty);
  RC_ASSERT(a.seed == b.seed);
  RC_ASSERT(a.logprobs == b.logprobs);
  RC_ASSERT(a.logit_bias.size() == b.logit_bias.size());
  for (std::size_t i = 0; i < a.logit_bias.size(); ++i) {
    RC_ASSERT(a.logit_bias[i].id == b.logit_bias[i].id);
    RC_ASSERT(a.logit_bias[i].bias == b.logit_bias[i].bias);
  }
}

RC_GTEST_PROP(EngineMessages, RequestsArriveAsTheyWereSent, ()) {
  const Request request{.id = *rc::gen::arbitrary<std::uint64_t>(),
                        .prompt = *rc::gen::arbitrary<std::vector<text::TokenId>>(),
                        .answer = *rc::gen::arbitrary<std::vector<text::TokenId>>(),
                        .answer_max = *rc::gen::arbitrary<std::int64_t>(),
                        .stop_ids = *rc::gen::arbitrary<std::vector<text::TokenId>>(),
                        .sampling = any_sampling(),
                        .logits = *rc::gen::element(LogitsWanted::kNone, LogitsWanted::kLast, LogitsWanted::kAll),
                        .cache_salt = *rc::gen::arbitrary<std::uint64_t>(),
                        .recoveries = *rc::gen::arbitrary<int>(),
                        .furthest = *rc::gen::arbitrary<std::int64_t>()};
  const auto got = through_client<Request>(request);
  RC_ASSERT(got.id == request.id);
  RC_ASSERT(got.prompt == request.prompt);
  RC_ASSERT(got.answer == request.answer);
  RC_ASSERT(got.answer_max == request.answer_max);
  RC_ASSERT(got.stop_ids == request.stop_ids);
  RC_ASSERT(got.logits == request.logits);
  RC_ASSERT(got.cache_salt == request.cache_salt);
  RC_ASSERT(got.recoveries == request.recoveries);
  RC_ASSERT(got.furthest == request.furthest);
  expect_same(got.sampling, request.sampling);
}

RC_GTEST_PROP(EngineMessages, TokensArriveAsTheyWereSent, ()) {
  TokenEvent made{*rc::gen::arbitrary<std::uint64_t>(), {*rc::gen::arbitrary<text::TokenId>(), any_float(), {}}};
  for (const text::TokenId id : *rc::gen::arbitrary<std::vector<text::TokenId>>())
    made.token.top.push_back({id, any_float()});
  const auto got = through<TokenEvent>(made);
  RC_ASSERT(got.id == made.id);
  RC_ASSERT(got.token.id == made.token.id);
  RC_ASSERT(got.token.logprob == made.token.logprob);
  RC_ASSERT(got.token.top.size() == made.token.top.size());
  for (std::size_t i = 0; i < got.token.top.size(); ++i) {
    RC_ASSERT(got.token.top[i].id == made.token.top[i].id);
    RC_ASSERT(got.token.top[i].logprob == made.token.top[i].logprob);
  }
}

RC_GTEST_PROP(EngineMessages, LogitsArriveBitByBit, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(0, 5);
  const auto V = *rc::gen::inRange<std::int64_t>(0, 40);
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows * V; ++i) values.push_back(any_float());
  const LogitsEvent made{7, *rc::gen::inRange<std::int64_t>(0, 1000),
                         tensor::Tensor::borrow(std::span(values), {rows, V})};
  const auto got = through<LogitsEvent>(made);
  RC_ASSERT(got.id == 7U);
  RC_ASSERT(got.position == made.position);
  RC_ASSERT(got.rows.shape() == made.rows.shape());
  RC_ASSERT(std::equal(values.begin(), values.end(), got.rows.data<float>()));
}

TEST(EngineMessages, HowFarAPromptIsArrives) {
  const auto read = through<PromptProgress>(PromptProgress{.id = 7, .done = 512, .total = 1433, .cached = 48});
  EXPECT_EQ(read.cached, 48);
  const auto step = through<StepDone>(StepDone{.tokens = 70, .preemptions = 2});
  EXPECT_EQ(step.tokens, 70);
  EXPECT_EQ(step.preemptions, 2);
  EXPECT_EQ(read.id, 7U);
  EXPECT_EQ(read.done, 512);
  EXPECT_EQ(read.total, 1433);
}

TEST(EngineMessages, AStreamInPiecesOfAnySizeIsReadTheSame) {
  const std::string stream =
      encode(EngineEvent{LoadProgress{Bytes{3}, Bytes{10}}}) +
      encode(EngineEvent{LogitsEvent{1, 4, tensor::Tensor::zeros({2, 3}, tensor::DType::kF32)}}) +
      encode(EngineEvent{TokenEvent{1, {42, 0, {}}}}) +
      encode(EngineEvent{RequestEnded{1, FinishReason::kLength, std::nullopt}});
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    EngineMessageReader reader;
    std::vector<std::size_t> kinds;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      while (const auto event = reader.next_event()) kinds.push_back(event->index());
    }
    EXPECT_EQ(kinds, (std::vector<std::size_t>{0, 4, 3, 5})) << "in pieces of " << piece;
  }
}

TEST(EngineMessages, WhatAnEngineIsArrivesWhole) {
  const auto got = through<EngineReady>(EngineReady{.ranks = 2,
                                                    .nodes = {"spark-1", "spark-2"},
                                                    .transport = "direct",
                                                    .backend = "ref",
                                                    .vocabulary = 768,
                                                    .context_max = 2048,
                                                    .cache_tokens = 4096,
                                                    .weights_each = {Bytes{1}, Bytes{5'000'000'000}},
                                                    .cache_each = Bytes{77}});
  EXPECT_EQ(got.ranks, 2);
  EXPECT_EQ(got.nodes, (std::vector<std::string>{"spark-1", "spark-2"}));
  EXPECT_EQ(got.transport, "direct");
  EXPECT_EQ(got.backend, "ref");
  EXPECT_EQ(got.vocabulary, 768);
  EXPECT_EQ(got.context_max, 2048);
  EXPECT_EQ(got.cache_tokens, 4096);
  EXPECT_EQ(got.weights_each, (std::vector<Bytes>{Bytes{1}, Bytes{5'000'000'000}}));
  EXPECT_EQ(got.cache_each, Bytes{77});
}

TEST(EngineMessages, ErrorsKeepCodeMessageHintAndContext) {
  const Error error = Error(ErrorCode::kExhausted, "needs 1.9 GB", "2 nodes would do").in("loading").in("on spark-1");
  const auto failed = through<EngineFailed>(EngineFailed{error});
  EXPECT_EQ(failed.error.code(), ErrorCode::kExhausted);
  EXPECT_EQ(failed.error.message(), "needs 1.9 GB");
  EXPECT_EQ(failed.error.hint(), "2 nodes would do");
  EXPECT_EQ(failed.error.context(), (std::vector<std::string>{"loading", "on spark-1"}));
  const auto ended = through<RequestEnded>(RequestEnded{9, FinishReason::kStop, error});
  EXPECT_EQ(ended.id, 9U);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.error->message(), "needs 1.9 GB");
  EXPECT_FALSE(through<RequestEnded>(RequestEnded{9, FinishReason::kCancelled, std::nullopt}).error);
  const auto recovered = through<EngineRecovered>(EngineRecovered{Seconds{1.25}, "rank 1 was killed"});
  EXPECT_EQ(recovered.after, Seconds{1.25});
  EXPECT_EQ(recovered.cause, "rank 1 was killed");
}

std::string framed(std::string_view payload) {
  const auto size = static_cast<std::uint32_t>(payload.size());
  return fmt::format("YKE\x02{}{}", std::string_view(reinterpret_cast<const char*>(&size), sizeof size), payload);
}
std::string framed_json(std::string_view json) {
  const auto size = static_cast<std::uint32_t>(json.size());
  return framed(fmt::format("\x05{}{}", std::string_view(reinterpret_cast<const char*>(&size), sizeof size), json));
}

TEST(EngineMessages, AllEventsOfAStepAreOneMessage) {
  const std::vector<EngineEvent> events = {TokenEvent{1, {42, 0, {}}}, TokenEvent{2, {43, 0, {}}},
                                           RequestEnded{2, FinishReason::kLength, std::nullopt}};
  EngineMessageReader reader;
  reader.feed(encode(events));
  EXPECT_EQ(std::get<TokenEvent>(reader.next_event().value()).token.id, 42);
  EXPECT_EQ(std::get<TokenEvent>(reader.next_event().value()).id, 2U);
  EXPECT_EQ(std::get<RequestEnded>(reader.next_event().value()).reason, FinishReason::kLength);
  EXPECT_FALSE(reader.next_event());
  EXPECT_LE(encode(EngineEvent{events[0]}).size(), 32U) << "a token takes few bytes";
}

TEST(EngineMessages, WhatIsNoMessageOfTheEngineIsRefused) {
  std::string logits;
  for (const std::uint64_t number : {1U, 0U, 2U, 3U}) logits.append(reinterpret_cast<const char*>(&number), 8);
  for (const std::string& wrong :
       {std::string("HTTP/1.1"), std::string("Y_"), framed("\x09"), framed("\x01short"), framed_json("{}"),
        framed_json("[1]"), framed_json("x"), framed_json(R"({"dance": {}})"),
        framed_json(R"({"ended": {"id": 1, "reason": "stop"}})"),
        framed("\x03" + logits + std::string("\xff\xff\xff\xff", 4)),
        framed_json(R"({"failed": {"code": "odd", "message": ""}})"),
        framed(std::string("\x04") + std::string(8, 'a') + "\x07"), std::string("YKE\x02\xff\xff\xff\xff", 8)}) {
    EngineMessageReader reader;
    reader.feed(wrong);
    EXPECT_ERROR(reader.next_event(), ErrorCode::kInvalid, "") << wrong;
  }
}

TEST(EngineMessages, ARequestThatCannotBeReadCostsItselfOnly) {
  const Request good{.id = 5, .prompt = {1, 2, 3}, .answer_max = 4};
  std::string bad = encode(ClientMessage{good});
  bad[4] = static_cast<char>(bad[4] - 1);  // its last byte is missing
  bad.pop_back();
  EngineMessageReader reader;
  reader.feed(bad + encode(ClientMessage{good}));
  const auto refused = std::get<RefusedRequest>(reader.next_client_message().value());
  EXPECT_EQ(refused.id, 5U);
  EXPECT_EQ(refused.error.code(), ErrorCode::kInvalid);
  EXPECT_EQ(std::get<Request>(reader.next_client_message().value()).prompt, good.prompt);
}

}  // namespace
}  // namespace yoke::engine
