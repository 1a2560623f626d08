// Two ends in one process over the loopback: bytes and pings really cross, and are counted and checked.
#include <gtest/gtest.h>

#include <future>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"
#include "yoke/base/json.h"
#include "yoke/base/result.h"
#include "yoke/link/flows.h"
#include "yoke/link/measuring_actions.h"
#include "yoke/link/ping_pong.h"

namespace yoke::link {
namespace {

using namespace literals;

const RailPlace kHere{"127.0.0.1", "lo"};

TEST(LinkTraffic, WhatIsSentArrivesAndTheWindowIsFull) {
  std::vector<Socket> listeners, nobody;
  listeners.push_back(listen_on_rail(kHere));
  listeners.push_back(listen_on_rail(kHere));
  const FlowRequest receive{.token = "secret", .send = {}, .streams = 2, .time = {0.2}};
  FlowRequest send = receive;
  for (const Socket& listener : listeners) send.send.push_back({kHere, listener.local()});
  auto sender = std::async(std::launch::async, [&] { return move_bytes(nobody, send); });
  const FlowOutcome received = move_bytes(listeners, receive);
  const FlowOutcome sent = sender.get();
  ASSERT_EQ(received.received.size(), 2U);
  ASSERT_EQ(sent.sent.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(received.received[i].bytes, sent.sent[i].bytes);
    EXPECT_GT(received.received[i].window_bytes, 0);
    EXPECT_LT(received.received[i].window_bytes, received.received[i].bytes) << "senders begin before and end after";
  }
  EXPECT_NEAR(received.window.value, 0.2, 0.15);
  EXPECT_GT(received.cores, 0);
}

TEST(LinkTraffic, AStrangerIsNotMeasured) {
  Socket listener = listen_on_rail(kHere);
  Socket unknown = connect_tcp(listener.local(), {}, Deadline::after(2_s));
  unknown.send_all("terces", Deadline::after(1_s));
  Socket friendly = connect_on_rail(kHere, listener.local(), "secret", Deadline::after(2_s));
  friendly.send_all("hello", Deadline::after(1_s));
  Socket accepted = accept_on_rail(listener, "secret", Deadline::after(5_s));
  std::string heard(5, ' ');
  accepted.receive_exact(std::as_writable_bytes(std::span(heard)), Deadline::after(2_s));
  EXPECT_EQ(heard, "hello");
}

TEST(LinkTraffic, SilentStrangersKeepNobodyWaiting) {
  Socket listener = listen_on_rail(kHere);
  std::vector<Socket> unknown_nodes;
  for (int i = 0; i < 20; ++i) unknown_nodes.push_back(connect_tcp(listener.local(), {}, Deadline::after(2_s)));
  unknown_nodes.back().send_all("sec", Deadline::after(1_s));
  const Instant begun = real_clock().now();
  RailAcceptor acceptor(listener, "secret");
  std::vector<Socket> friendly;
  for (int i = 0; i < 2; ++i) {
    friendly.push_back(connect_on_rail(kHere, listener.local(), "secret", Deadline::after(2_s)));
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(acceptor.next(Deadline::after(5_s)));
  EXPECT_LT(to_seconds(real_clock().now() - begun).value, 5.0) << "each unknown client may be silent for 2 s";
  EXPECT_ERROR(acceptor.next(Deadline::after(100_ms)), ErrorCode::kTimeout, "waited too long for a connection");
}

TEST(LinkTraffic, ANodeThatNobodyReachesIsReportedInTime) {
  std::vector<Socket> nobody;
  const Endpoint closed = listen_tcp({"127.0.0.1", 0}).local();
  EXPECT_ERROR(move_bytes(nobody, {.token = "t", .send = {{kHere, closed}}, .streams = 1, .time = {0.1}}),
               ErrorCode::kUnavailable, "Connection refused");
}

TEST(LinkTraffic, PingsOfEverySizeComeBack) {
  Socket listener = listen_on_rail(kHere);
  const PingRequest request{
      .token = "secret",
      .from = kHere,
      .to = listener.local(),
      .rounds = {{.size = 8, .count = 101, .warm_up = 3}, {.size = 65536, .count = 1, .warm_up = 0}}};
  auto other = std::async(std::launch::async, [&] { return answer_pings(listener, request); });
  const PingOutcome outcome = ping(request);
  const PingOutcome answered = other.get();
  EXPECT_EQ(outcome.messages, 3 + 101 + 1 + 2) << "those to warm up, those asked for, and the end of each round";
  EXPECT_EQ(answered.messages, outcome.messages);
  EXPECT_EQ(outcome.resent, 0);
  const std::vector<PingResult>& results = outcome.rows;
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].count, 101);
  EXPECT_GT(results[0].p50.value, 0);
  EXPECT_LE(results[0].min, results[0].p50);
  EXPECT_LE(results[0].p50, results[0].p99);
  EXPECT_LE(results[0].p99, results[0].max);
  EXPECT_EQ(results[1].p50, results[1].max) << "of one message all percentiles are it";
}

TEST(LinkTraffic, PingsThatMakeNoSenseAreRefused) {
  for (const PingRound& round : {PingRound{.size = 7}, PingRound{.size = 1 << 21}, PingRound{.count = 0}}) {
    EXPECT_ERROR(ping({.token = "t", .from = kHere, .to = {"127.0.0.1", 1}, .rounds = {round}}), ErrorCode::kInvalid,
                 "cannot be timed");
  }
}

TEST(MeasuringActions, RefuseQuestionsThatMakeNoSense) {
  agent::AgentState state;
  agent::AgentContext context(state, [](std::string_view) {});
  const Document seven = Document::number(std::int64_t{7});
  for (const auto action :
       {report_rail_facts, listen_on_rails, move_on_rails, answer_pings_on_rail, ping_on_rail, run_perftest}) {
    const auto answer = try_to([&] { return action(seven, context); });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::kInvalid) << answer.error().message();
  }
  const Document odd = parse_json(R"({"commands":[["rm","-rf"]],"limit":1})", "question");
  const auto refused = try_to([&] { return run_perftest(odd, context); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalid) << refused.error().message();
}

TEST(MeasuringActions, ListenersStayForTheNextQuestion) {
  agent::AgentState state;
  agent::AgentContext context(state, [](std::string_view) {});
  const Document place = Document::list(
      {Document::map({{"address", Document::string("127.0.0.1")}, {"interface", Document::string("lo")}})});
  const Document ports = listen_on_rails(place, context);
  ASSERT_EQ(ports.items.size(), 1U);
  const Endpoint to{"127.0.0.1", std::stoi(ports.items[0].text)};
  const PingRequest request{.token = "t", .from = kHere, .to = to, .rounds = {{.size = 8, .count = 3}}};
  auto answering = std::async(std::launch::async, [&] { return answer_pings_on_rail(to_json(request), context); });
  const PingOutcome asked = from_json<PingOutcome>(ping_on_rail(to_json(request), context));
  EXPECT_EQ(asked.messages, from_json<PingOutcome>(answering.get()).messages);
}

}  // namespace
}  // namespace yoke::link
