// A Front against an engine that the test plays: it speaks the messages by hand, dies and comes back.
#include "yoke/engine/front.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/base/files.h"
#include "yoke/base/socket_testing.h"

namespace yoke {
namespace {

using namespace literals;

// Rank 0's side of the line.
class PlayedEngine {
 public:
  explicit PlayedEngine(Socket line) : line_(std::move(line)) {}

  void say(const EngineEvent& event) { line_.send_all(encode(event), Deadline::after(30_s)); }
  void say_token(std::uint64_t id, TokenId token) { say(TokenMade{id, {token, 0, {}}}); }
  void say_bytes(std::string_view bytes) { line_.send_all(bytes, Deadline::after(30_s)); }

  FrontMessage hear() {
    while (true) {
      if (auto message = reader_.next_front_message()) return *message;
      std::array<std::byte, 4096> buffer;
      const std::size_t count = receive_some(line_, buffer, Deadline::after(30_s));
      if (count == 0) throw Error(ErrorCode::kUnavailable, "the front has gone");
      reader_.feed({reinterpret_cast<const char*>(buffer.data()), count});
    }
  }
  Request hear_request() { return std::get<Request>(hear()); }

 private:
  Socket line_;
  EngineMessageReader reader_;
};

struct Pair {
  Socket front, engine;
};
Pair make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) throw system_error(errno, "pair");
  return {Socket(UniqueFd(ends[0]), "engine"), Socket(UniqueFd(ends[1]), "front")};
}

struct FrontTest : testing::Test {
  ScratchDir scratch{"front"};
  std::filesystem::path path = scratch.path() / "front";
  Front front{listen_unix(path)};

  // Rank 0 comes; the front takes it with its next look.
  PlayedEngine connect() {
    PlayedEngine engine(connect_unix(path, Deadline::after(30_s)));
    EXPECT_FALSE(front.next(Deadline::after(20_ms)));
    return engine;
  }
  template <class Event>
  Event need() {
    const auto event = front.next(Deadline::after(30_s));
    if (!event) throw Error(ErrorCode::kTimeout, "nothing came");
    return std::get<Event>(*event);
  }
  Error failure() {
    try {
      while (front.next(Deadline::after(30_s))) {
      }
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::kInternal, "nothing was thrown");
  }
};

TEST_F(FrontTest, RequestsWaitForTheirEngine) {
  front.submit({.id = 1, .prompt = {5, 6}, .answer_most = 3});
  PlayedEngine engine = connect();
  EXPECT_EQ(engine.hear_request().prompt, (std::vector<TokenId>{5, 6}));
  engine.say(LoadProgress{Bytes{1}, Bytes{2}});
  engine.say(EngineReady{.ranks = 2});
  engine.say_token(1, 42);
  engine.say(RequestEnded{1, FinishReason::kStop, std::nullopt});
  EXPECT_EQ(need<LoadProgress>().total, Bytes{2});
  EXPECT_EQ(need<EngineReady>().ranks, 2);
  EXPECT_EQ(need<TokenMade>().token.id, 42);
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kStop);
  EXPECT_FALSE(front.next(Deadline::after(10_ms)));
}

TEST_F(FrontTest, AnswersGoOnAfterRankZerosDeathWithNoTokenLostOrDoubled) {
  front.submit({.id = 1, .prompt = {5}, .answer_most = 4});
  front.submit({.id = 2, .prompt = {6}, .answer_most = 4});
  std::vector<TokenId> of_first, of_second;
  {
    PlayedEngine engine = connect();
    engine.say(EngineReady{});
    engine.say_token(1, 11);
    engine.say_token(2, 21);
    engine.say_token(1, 12);
    const std::string cut = encode(EngineEvent{TokenMade{2, {99, 0, {}}}});
    engine.say_bytes(cut.substr(0, cut.size() - 1));  // dies in the middle of a word, which then never was
  }
  need<EngineReady>();
  for (int i = 0; i < 3; ++i) {
    const auto token = need<TokenMade>();
    (token.id == 1 ? of_first : of_second).push_back(token.token.id);
  }
  PlayedEngine second = connect();
  EXPECT_EQ(second.hear_request().answer, (std::vector<TokenId>{11, 12}));
  EXPECT_EQ(second.hear_request().answer, (std::vector<TokenId>{21}));
  second.say(LoadProgress{Bytes{1}, Bytes{2}});  // of no interest: the asker sees a pause
  second.say(EngineReady{});
  const auto recovered = need<EngineRecovered>();
  EXPECT_GT(recovered.after.value, 0.01);
  EXPECT_LT(recovered.after.value, 5);
  second.say_token(1, 13);
  second.say_token(2, 22);
  second.say(RequestEnded{1, FinishReason::kStop, std::nullopt});
  EXPECT_EQ(need<TokenMade>().token.id, 13);
  EXPECT_EQ(need<TokenMade>().token.id, 22);
  EXPECT_EQ(need<RequestEnded>().id, 1U);
  EXPECT_EQ(of_first, (std::vector<TokenId>{11, 12}));
  EXPECT_EQ(of_second, (std::vector<TokenId>{21}));
}

TEST_F(FrontTest, AnAnswerThatWasWholeIsNotAskedForAgain) {
  front.submit({.id = 1, .prompt = {5}, .answer_most = 2});
  front.submit({.id = 2, .prompt = {5}, .answer_most = 9, .stop_ids = {7}});
  {
    PlayedEngine engine = connect();
    engine.say_token(1, 11);
    engine.say_token(1, 12);
    engine.say_token(2, 7);
  }
  for (int i = 0; i < 3; ++i) need<TokenMade>();
  PlayedEngine second(connect_unix(path, Deadline::after(30_s)));
  const auto first = need<RequestEnded>();
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.reason, FinishReason::kLength);
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kStop);
  front.submit({.id = 3, .prompt = {1}, .answer_most = 1});
  EXPECT_EQ(second.hear_request().id, 3U);
}

TEST_F(FrontTest, LogitsAreGivenOnceThoughThePromptIsComputedTwice) {
  front.submit({.id = 1, .prompt = {5, 6, 7}, .answer_most = 1, .logits = LogitsWanted::kAll});
  const auto rows = [](std::initializer_list<float> values) {
    std::vector<float> copy = values;
    return Tensor::borrow(std::span(copy), {std::ssize(copy), 1}).copied();
  };
  {
    PlayedEngine engine = connect();
    engine.say(LogitsMade{1, 0, rows({0})});
  }
  EXPECT_EQ(need<LogitsMade>().rows.extent(0), 1);
  PlayedEngine second = connect();
  second.say(LogitsMade{1, 0, rows({0, 1})});
  second.say(LogitsMade{1, 0, rows({0, 1})});
  second.say(LogitsMade{1, 2, rows({2})});
  const auto rest = need<LogitsMade>();
  EXPECT_EQ(rest.position, 1);
  ASSERT_EQ(rest.rows.extent(0), 1);
  EXPECT_EQ(rest.rows.data<float>()[0], 1);
  EXPECT_EQ(need<LogitsMade>().position, 2);
}

TEST_F(FrontTest, WhatIsCancelledEndsOnceWithOrWithoutAnEngine) {
  front.submit({.id = 1, .prompt = {5}, .answer_most = 2});
  front.cancel(1);
  front.cancel(1);
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kCancelled);
  front.submit({.id = 2, .prompt = {5}, .answer_most = 2});
  {
    PlayedEngine engine = connect();
    EXPECT_EQ(engine.hear_request().id, 2U);
    front.cancel(2);
    front.cancel(2);
    EXPECT_EQ(std::get<CancelRequest>(engine.hear()).id, 2U);
  }
  // Rank 0 died before it could say so, and the next one need not hear of it.
  PlayedEngine second(connect_unix(path, Deadline::after(30_s)));
  EXPECT_EQ(need<RequestEnded>().reason, FinishReason::kCancelled);
  front.submit({.id = 3, .prompt = {1}, .answer_most = 1});
  EXPECT_EQ(second.hear_request().id, 3U);
  second.say_token(2, 50);  // nobody asks any more
  EXPECT_FALSE(front.next(Deadline::after(20_ms)));
}

TEST_F(FrontTest, AFailedEngineIsThrownAgainAndAgain) {
  PlayedEngine engine = connect();
  engine.say(EngineFailed{Error(ErrorCode::kExhausted, "needs 1.9 GB")});
  EXPECT_EQ(failure().message(), "needs 1.9 GB");
  EXPECT_EQ(failure().code(), ErrorCode::kExhausted);
}

TEST_F(FrontTest, TheEndWaitsForWhatWasSent) {
  front.submit({.id = 1, .prompt = {5}, .answer_most = 2});
  {
    PlayedEngine engine = connect();
    engine.say_token(1, 11);
    std::thread([&] { front.end(Error(ErrorCode::kUnavailable, "rank 1 was killed too often")); }).join();
  }
  EXPECT_EQ(need<TokenMade>().token.id, 11);
  EXPECT_EQ(failure().message(), "rank 1 was killed too often");
}

TEST_F(FrontTest, WhatIsNoMessageIsAnError) {
  PlayedEngine engine = connect();
  engine.say_bytes("HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(failure().code(), ErrorCode::kInvalid);
}

TEST(FrontOver, AnEngineInThisProcessEndsWithItsLine) {
  Pair pair = make_pair();
  Front front(std::move(pair.front), Front::Ends::kConnection);
  front.submit({.id = 1, .prompt = {5}, .answer_most = 2});
  {
    PlayedEngine engine(std::move(pair.engine));
    EXPECT_EQ(engine.hear_request().id, 1U);
  }
  EXPECT_FALSE(front.next(Deadline::after(100_ms)));  // its reason may still come
  front.end(Error(ErrorCode::kInvalid, "a layer is missing"));
  EXPECT_ERROR(front.next(Deadline::after(30_s)), ErrorCode::kInvalid, "a layer is missing");
}

TEST(FrontOver, NeitherSideWaitsForTheOtherWhereBothHaveMuchToSay) {
  constexpr int kRequests = 40;
  constexpr int kTokens = 6000;  // more than the line holds
  Pair pair = make_pair();
  Front front(std::move(pair.front), Front::Ends::kConnection);
  std::thread engine_thread([line = std::move(pair.engine)]() mutable {
    PlayedEngine engine(std::move(line));
    engine.hear_request();
    for (int i = 0; i < kTokens; ++i) engine.say_token(0, i);  // hears nothing meanwhile
    for (int i = 1; i < kRequests; ++i) EXPECT_EQ(engine.hear_request().id, static_cast<std::uint64_t>(i));
    engine.say(RequestEnded{0, FinishReason::kStop, std::nullopt});
  });
  const std::vector<TokenId> prompt(20000, 123456);
  for (int i = 0; i < kRequests; ++i) {
    front.submit({.id = static_cast<std::uint64_t>(i), .prompt = prompt, .answer_most = kTokens + 1});
  }
  int tokens = 0;
  while (const auto event = front.next(Deadline::after(60_s))) {
    if (std::holds_alternative<RequestEnded>(*event)) break;
    tokens += std::holds_alternative<TokenMade>(*event) ? 1 : 0;
  }
  EXPECT_EQ(tokens, kTokens);
  engine_thread.join();
}

}  // namespace
}  // namespace yoke
