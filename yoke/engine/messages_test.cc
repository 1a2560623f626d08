#include "yoke/engine/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"

namespace yoke {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
T through_front(const FrontMessage& message) {
  EngineMessageReader reader;
  reader.feed(encode(message));
  return std::get<T>(reader.next_front_message().value());
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

SamplingOptions any_sampling() {
  SamplingOptions options{.temperature = any_float(),
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
  for (const TokenId id : *rc::gen::arbitrary<std::vector<TokenId>>()) options.logit_bias.push_back({id, any_float()});
  return options;
}

void expect_same(const SamplingOptions& a, const SamplingOptions& b) {
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
                        .prompt = *rc::gen::arbitrary<std::vector<TokenId>>(),
                        .answer = *rc::gen::arbitrary<std::vector<TokenId>>(),
                        .answer_most = *rc::gen::arbitrary<std::int64_t>(),
                        .stop_ids = *rc::gen::arbitrary<std::vector<TokenId>>(),
                        .sampling = any_sampling(),
                        .logits = *rc::gen::element(LogitsWanted::kNone, LogitsWanted::kLast, LogitsWanted::kAll)};
  for (const Request& got : {through_front<Request>(request), request_from_json(to_json(request))}) {
    RC_ASSERT(got.id == request.id);
    RC_ASSERT(got.prompt == request.prompt);
    RC_ASSERT(got.answer == request.answer);
    RC_ASSERT(got.answer_most == request.answer_most);
    RC_ASSERT(got.stop_ids == request.stop_ids);
    RC_ASSERT(got.logits == request.logits);
    expect_same(got.sampling, request.sampling);
  }
}

RC_GTEST_PROP(EngineMessages, TokensArriveAsTheyWereSent, ()) {
  TokenMade made{*rc::gen::arbitrary<std::uint64_t>(), {*rc::gen::arbitrary<TokenId>(), any_float(), {}}};
  for (const TokenId id : *rc::gen::arbitrary<std::vector<TokenId>>()) made.token.top.push_back({id, any_float()});
  const auto got = through<TokenMade>(made);
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
  const LogitsMade made{7, *rc::gen::inRange<std::int64_t>(0, 1000), Tensor::borrow(std::span(values), {rows, V})};
  const auto got = through<LogitsMade>(made);
  RC_ASSERT(got.id == 7U);
  RC_ASSERT(got.position == made.position);
  RC_ASSERT(got.rows.shape() == made.rows.shape());
  RC_ASSERT(std::equal(values.begin(), values.end(), got.rows.data<float>()));
}

TEST(EngineMessages, HowFarAPromptIsArrives) {
  const auto read = through<PromptRead>(PromptRead{.id = 7, .done = 512, .total = 1433});
  EXPECT_EQ(read.id, 7U);
  EXPECT_EQ(read.done, 512);
  EXPECT_EQ(read.total, 1433);
}

TEST(EngineMessages, AStreamInPiecesOfAnySizeIsReadTheSame) {
  const std::string stream = encode(EngineEvent{LoadProgress{Bytes{3}, Bytes{10}}}) +
                             encode(EngineEvent{LogitsMade{1, 4, Tensor::zeros({2, 3}, DType::kF32)}}) +
                             encode(EngineEvent{TokenMade{1, {42, 0, {}}}}) +
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
                                                    .context_most = 2048,
                                                    .cache_tokens = 4096,
                                                    .weights_each = {Bytes{1}, Bytes{5'000'000'000}},
                                                    .cache_each = Bytes{77}});
  EXPECT_EQ(got.ranks, 2);
  EXPECT_EQ(got.nodes, (std::vector<std::string>{"spark-1", "spark-2"}));
  EXPECT_EQ(got.transport, "direct");
  EXPECT_EQ(got.backend, "ref");
  EXPECT_EQ(got.vocabulary, 768);
  EXPECT_EQ(got.context_most, 2048);
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

std::string framed(std::string_view head, std::string_view body = {}) {
  const std::uint32_t sizes[] = {static_cast<std::uint32_t>(head.size()), static_cast<std::uint32_t>(body.size())};
  return fmt::format("YKE\x01{}{}{}", std::string_view(reinterpret_cast<const char*>(sizes), 8), head, body);
}

TEST(EngineMessages, WhatIsNoMessageIsRefused) {
  const std::string logits = R"({"logits": {"id": "1", "position": 0, "rows": 2, "vocabulary": 3}})";
  for (const std::string& wrong : {std::string("HTTP/1.1"), std::string("Y_"), framed("{}"), framed("[1]"), framed("x"),
                                   framed(R"({"dance": {}})"), framed(R"({"token": {}, "ended": {}})"),
                                   framed(R"({"ended": {"id": 1, "reason": "stop"}})"), framed(logits, "short"),
                                   framed(R"({"load": {"done": 1, "total": 2}})", "a body"),
                                   framed(R"({"failed": {"code": "odd", "message": ""}})"),
                                   std::string("YKE\x01\xff\xff\xff\xff\x00\x00\x00\x00", 12)}) {
    EngineMessageReader reader;
    reader.feed(wrong);
    try {
      reader.next_event();
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalid) << wrong;
    }
  }
}

TEST(EngineMessages, LogitsThatClaimMoreThanTheyBringAreRefusedBeforeMemoryIsTaken) {
  EngineMessageReader reader;
  reader.feed(framed(R"({"logits": {"id": "1", "position": 0, "rows": 4611686018427387904, "vocabulary": 4}})"));
  EXPECT_ERROR(reader.next_event(), ErrorCode::kInvalid, "0 bytes are not the logits of 4611686018427387904 tokens");
}

}  // namespace
}  // namespace yoke
