// An EngineConnection against an engine that the test plays: it speaks the messages by hand, dies and comes back.
#include "yoke/engine/engine_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/socket_testing.h"

namespace yoke::engine {
namespace {

using namespace literals;

// Rank 0's side of the line.
class PlayedEngine {
 public:
  explicit PlayedEngine(Socket line) : line_(std::move(line)) {}

  void send(const EngineEvent& event) { line_.send_all(encode(event), Deadline::after(30_s)); }
  void send_token(std::uint64_t id, text::TokenId token) { send(TokenEvent{id, {token, 0, {}}}); }
  void bytes_text(std::string_view bytes) { line_.send_all(bytes, Deadline::after(30_s)); }

  ClientMessage hear() {
    while (true) {
      if (auto message = reader_.next_client_message()) return *message;
      std::array<std::byte, 4096> buffer;
      const std::size_t count = receive_some(line_, buffer, Deadline::after(30_s));
      if (count == 0) throw Error(ErrorCode::kUnavailable, "the client has gone");
      reader_.feed({reinterpret_cast<const char*>(buffer.data()), count});
    }
  }
  Request hear_request() { return std::get<Request>(hear()); }

 private:
  Socket line_;
  EngineMessageReader reader_;
};

struct Pair {
  Socket client, engine;
};
Pair make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) throw system_error(errno, "pair");
  return {Socket(UniqueFd(ends[0]), "engine"), Socket(UniqueFd(ends[1]), "client")};
}

struct EngineConnectionTest : testing::Test {
  ScratchDir scratch{"client"};
  std::filesystem::path path = scratch.path() / "client";
  EngineConnection connection{listen_unix(path)};

  // Rank 0 comes; the client takes it with its next look.
  PlayedEngine connect() {
    PlayedEngine engine(connect_unix(path, Deadline::after(30_s)));
    EXPECT_FALSE(connection.next(Deadline::after(20_ms)));
    return engine;
  }
  template <class Event>
  Event need() {
    const auto event = connection.next(Deadline::after(30_s));
    if (!event) throw Error(ErrorCode::kTimeout, "nothing came");
    return std::get<Event>(*event);
  }
  Error failure() {
    try {
      while (connection.next(Deadline::after(30_s))) {
      }
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::kInternal, "nothing was thrown");
  }
};

TEST_F(EngineConnectionTest, RequestsWaitForTheirEngine) {
  connection.submit({.id = 1, .prompt = {5, 6}, .answer_max = 3});
  PlayedEngine engine = connect();
  EXPECT_EQ(engine.hear_request().prompt, (std::vector<text::TokenId>{5, 6}));
  engine.send(LoadProgress{Bytes{1}, Bytes{2}});
  engine.send(EngineReady{.ranks = 2});
  engine.send_token(1, 42);
  engine.send(RequestEnded{1, FinishReason::kStop, std::nullopt});
  EXPECT_EQ(need<LoadProgress>().total, Bytes{2});
  EXPECT_EQ(need<EngineReady>().ranks, 2);
  EXPECT_EQ(need<TokenEvent>().token.id, 42);
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kStop);
  EXPECT_FALSE(connection.next(Deadline::after(10_ms)));
}

TEST_F(EngineConnectionTest, ASubmitFromAnotherThreadIsSentAtOnce) {
  PlayedEngine engine = connect();
  engine.send(EngineReady{});
  need<EngineReady>();
  std::thread waits([&] { EXPECT_TRUE(connection.next(Deadline::after(30_s)).has_value()); });
  // A turn of the wait takes 0.5 s, so each submit would take nearly that. The quickest counts: a busy machine may be
  // as late with one of them.
  double quickest = 30;
  for (std::uint64_t id = 1; id <= 5; ++id) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps now
    const Instant start = real_clock().now();
    connection.submit({.id = id, .prompt = {5, 6}, .answer_max = 3});
    EXPECT_EQ(engine.hear_request().id, id);
    quickest = std::min(quickest, to_seconds(real_clock().now() - start).value);
  }
  EXPECT_LT(quickest, 0.25) << "no turn is waited for";
  engine.send_token(1, 42);
  waits.join();
}

TEST_F(EngineConnectionTest, WhatIsMadeHereWakesTheWaiter) {
  std::thread waits([&] {
    EXPECT_EQ(std::get<RequestEnded>(*connection.next(Deadline::after(30_s))).reason, FinishReason::kCancelled);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Instant start = real_clock().now();
  connection.submit({.id = 1, .prompt = {5, 6}, .answer_max = 3});
  connection.cancel(1);
  waits.join();
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 0.45) << "a turn takes 0.5 s";
}

TEST_F(EngineConnectionTest, OnlyTheRequestThatRanAloneIsSuspectedOfRankZerosDeath) {
  connection.submit({.id = 1, .prompt = {5}, .answer_max = 4});
  connection.submit({.id = 2, .prompt = {6}, .answer_max = 4});
  for (int death = 0; death < 3; ++death) {
    PlayedEngine engine = connect();
    EXPECT_EQ(engine.hear_request().recoveries, death);
    EXPECT_EQ(engine.hear_request().recoveries, std::min(death, 2));
    engine.send(EngineReady{});
    if (death == 2) engine.send(RequestAlone{1});
    if (death == 0)
      need<EngineReady>();
    else
      need<EngineRecovered>();
    EXPECT_FALSE(connection.next(Deadline::after(20_ms)));
  }
  EXPECT_FALSE(connection.next(Deadline::after(20_ms)));
  PlayedEngine engine = connect();
  EXPECT_EQ(engine.hear_request().recoveries, 3);
  EXPECT_EQ(engine.hear_request().recoveries, 2) << "it was not on";
  engine.send(EngineReady{});
  engine.send_token(2, 7);
  need<EngineRecovered>();
  need<TokenEvent>();
}

TEST_F(EngineConnectionTest, AnswersGoOnAfterRankZerosDeathWithNoTokenLostOrDoubled) {
  connection.submit({.id = 1, .prompt = {5}, .answer_max = 4});
  connection.submit({.id = 2, .prompt = {6}, .answer_max = 4});
  std::vector<text::TokenId> of_first, of_second;
  {
    PlayedEngine engine = connect();
    engine.send(EngineReady{});
    engine.send_token(1, 11);
    engine.send_token(2, 21);
    engine.send_token(1, 12);
    const std::string cut = encode(EngineEvent{TokenEvent{2, {99, 0, {}}}});
    engine.bytes_text(cut.substr(0, cut.size() - 1));  // dies in the middle of a word, which then never was
  }
  need<EngineReady>();
  for (int i = 0; i < 3; ++i) {
    const auto token = need<TokenEvent>();
    (token.id == 1 ? of_first : of_second).push_back(token.token.id);
  }
  PlayedEngine second = connect();
  EXPECT_EQ(second.hear_request().answer, (std::vector<text::TokenId>{11, 12}));
  EXPECT_EQ(second.hear_request().answer, (std::vector<text::TokenId>{21}));
  second.send(LoadProgress{Bytes{1}, Bytes{2}});  // of no interest: the client sees a pause
  second.send(EngineReady{});
  const auto recovered = need<EngineRecovered>();
  EXPECT_GT(recovered.after.value, 0.01);
  EXPECT_LT(recovered.after.value, 5);
  second.send_token(1, 13);
  second.send_token(2, 22);
  second.send(RequestEnded{1, FinishReason::kStop, std::nullopt});
  EXPECT_EQ(need<TokenEvent>().token.id, 13);
  EXPECT_EQ(need<TokenEvent>().token.id, 22);
  EXPECT_EQ(need<RequestEnded>().id, 1U);
  EXPECT_EQ(of_first, (std::vector<text::TokenId>{11, 12}));
  EXPECT_EQ(of_second, (std::vector<text::TokenId>{21}));
}

TEST_F(EngineConnectionTest, AnAnswerThatWasWholeIsNotAskedForAgain) {
  connection.submit({.id = 1, .prompt = {5}, .answer_max = 2});
  connection.submit({.id = 2, .prompt = {5}, .answer_max = 9, .stop_ids = {7}});
  {
    PlayedEngine engine = connect();
    engine.send_token(1, 11);
    engine.send_token(1, 12);
    engine.send_token(2, 7);
  }
  for (int i = 0; i < 3; ++i) need<TokenEvent>();
  PlayedEngine second(connect_unix(path, Deadline::after(30_s)));
  const auto first = need<RequestEnded>();
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.reason, FinishReason::kLength);
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kStop);
  connection.submit({.id = 3, .prompt = {1}, .answer_max = 1});
  EXPECT_EQ(second.hear_request().id, 3U);
}

TEST_F(EngineConnectionTest, LogitsAreGivenOnceThoughThePromptIsComputedTwice) {
  connection.submit({.id = 1, .prompt = {5, 6, 7}, .answer_max = 1, .logits = LogitsWanted::kAll});
  const auto rows = [](std::initializer_list<float> values) {
    std::vector<float> copy = values;
    return tensor::Tensor::borrow(std::span(copy), {std::ssize(copy), 1}).copied();
  };
  {
    PlayedEngine engine = connect();
    engine.send(LogitsEvent{1, 0, rows({0})});
  }
  EXPECT_EQ(need<LogitsEvent>().rows.extent(0), 1);
  PlayedEngine second = connect();
  second.send(LogitsEvent{1, 0, rows({0, 1})});
  second.send(LogitsEvent{1, 0, rows({0, 1})});
  second.send(LogitsEvent{1, 2, rows({2})});
  const auto rest = need<LogitsEvent>();
  EXPECT_EQ(rest.position, 1);
  ASSERT_EQ(rest.rows.extent(0), 1);
  EXPECT_EQ(rest.rows.data<float>()[0], 1);
  EXPECT_EQ(need<LogitsEvent>().position, 2);
}

TEST_F(EngineConnectionTest, WhatIsCancelledEndsOnceWithOrWithoutAnEngine) {
  connection.submit({.id = 1, .prompt = {5}, .answer_max = 2});
  connection.cancel(1);
  connection.cancel(1);
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kCancelled);
  connection.submit({.id = 2, .prompt = {5}, .answer_max = 2});
  {
    PlayedEngine engine = connect();
    EXPECT_EQ(engine.hear_request().id, 2U);
    connection.cancel(2);
    connection.cancel(2);
    EXPECT_EQ(std::get<CancelRequest>(engine.hear()).id, 2U);
  }
  // Rank 0 died before it could say so, and the next one need not hear of it.
  PlayedEngine second(connect_unix(path, Deadline::after(30_s)));
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kCancelled);
  connection.submit({.id = 3, .prompt = {1}, .answer_max = 1});
  EXPECT_EQ(second.hear_request().id, 3U);
  second.send_token(2, 50);  // nobody asks any more
  EXPECT_FALSE(connection.next(Deadline::after(20_ms)));
}

TEST_F(EngineConnectionTest, AFailedEngineIsThrownAgainAndAgain) {
  PlayedEngine engine = connect();
  engine.send(EngineFailed{Error(ErrorCode::kExhausted, "needs 1.9 GB")});
  EXPECT_EQ(failure().message(), "needs 1.9 GB");
  EXPECT_EQ(failure().code(), ErrorCode::kExhausted);
}

TEST_F(EngineConnectionTest, TheEndWaitsForWhatWasSent) {
  connection.submit({.id = 1, .prompt = {5}, .answer_max = 2});
  {
    PlayedEngine engine = connect();
    engine.send_token(1, 11);
    std::thread([&] { connection.end(Error(ErrorCode::kUnavailable, "rank 1 was killed too often")); }).join();
  }
  EXPECT_EQ(need<TokenEvent>().token.id, 11);
  EXPECT_EQ(failure().message(), "rank 1 was killed too often");
}

TEST_F(EngineConnectionTest, WhatIsNoMessageIsAnError) {
  PlayedEngine engine = connect();
  engine.bytes_text("HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(failure().code(), ErrorCode::kInvalid);
}

TEST(EngineConnectionOver, AnEngineInThisProcessEndsWithItsLine) {
  Pair pair = make_pair();
  EngineConnection connection(std::move(pair.client), EngineConnection::Ends::kConnection);
  connection.submit({.id = 1, .prompt = {5}, .answer_max = 2});
  {
    PlayedEngine engine(std::move(pair.engine));
    EXPECT_EQ(engine.hear_request().id, 1U);
  }
  EXPECT_FALSE(connection.next(Deadline::after(100_ms)));  // its reason may still come
  connection.end(Error(ErrorCode::kInvalid, "a layer is missing"));
  EXPECT_ERROR(connection.next(Deadline::after(30_s)), ErrorCode::kInvalid, "a layer is missing");
}

TEST(EngineConnectionOver, NeitherSideWaitsForTheOtherWhereBothHaveMuchToSay) {
  constexpr int kRequests = 40;
  constexpr int kTokens = 6000;  // more than the line holds
  Pair pair = make_pair();
  EngineConnection connection(std::move(pair.client), EngineConnection::Ends::kConnection);
  std::thread engine_thread([line = std::move(pair.engine)]() mutable {
    PlayedEngine engine(std::move(line));
    engine.hear_request();
    for (int i = 0; i < kTokens; ++i) engine.send_token(0, i);  // hears nothing meanwhile
    for (int i = 1; i < kRequests; ++i) EXPECT_EQ(engine.hear_request().id, static_cast<std::uint64_t>(i));
    engine.send(RequestEnded{0, FinishReason::kStop, std::nullopt});
  });
  const std::vector<text::TokenId> prompt(20000, 123456);
  for (int i = 0; i < kRequests; ++i) {
    connection.submit({.id = static_cast<std::uint64_t>(i), .prompt = prompt, .answer_max = kTokens + 1});
  }
  int tokens = 0;
  while (const auto event = connection.next(Deadline::after(60_s))) {
    if (std::holds_alternative<RequestEnded>(*event)) break;
    tokens += std::holds_alternative<TokenEvent>(*event) ? 1 : 0;
  }
  EXPECT_EQ(tokens, kTokens);
  engine_thread.join();
}

}  // namespace
}  // namespace yoke::engine
