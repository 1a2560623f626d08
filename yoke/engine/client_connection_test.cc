#include "yoke/engine/client_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "yoke/base/socket_testing.h"
#include "yoke/engine/engine_threads_testing.h"

namespace yoke::engine {
namespace {

using namespace literals;

LogitsEvent some_logits(std::int64_t position) {
  return {.id = 1, .position = position, .rows = tensor::Tensor::zeros({64, 1024}, tensor::DType::kF32)};
}

// The events that come until the line is closed or this many are there.
std::vector<EngineEvent> read_events(Socket& socket, std::size_t count) {
  std::vector<EngineEvent> events;
  EngineMessageReader reader;
  std::array<std::byte, 64 << 10> buffer;
  while (events.size() < count) {
    const std::size_t size = receive_some(socket, buffer, Deadline::after(30_s));
    if (size == 0) break;
    reader.feed({reinterpret_cast<const char*>(buffer.data()), size});
    while (auto event = reader.next_event()) events.push_back(std::move(*event));
  }
  return events;
}

TEST(ClientConnection, WaitsForAClientThatDoesNotReadAndLosesNothing) {
  constexpr std::int64_t kEvents = 100;  // 26 MB
  EngineSocketPair ends = make_engine_sockets();
  ClientConnection line(std::move(ends.of_engine));
  const Instant start = real_clock().now();
  for (std::int64_t i = 0; i < kEvents; ++i) line.send(some_logits(i));
  EXPECT_TRUE(line.take(100_ms).empty());
  EXPECT_LT(to_seconds(real_clock().now() - start).value, 20) << "sending does not wait";
  EXPECT_TRUE(line.is_behind());
  EXPECT_FALSE(line.closed());
  std::vector<EngineEvent> events;
  std::thread client([&] { events = read_events(ends.of_client, kEvents + 1); });
  const Deadline deadline = Deadline::after(30_s);
  while (line.is_behind() && !deadline.expired()) line.take(1_s);
  EXPECT_FALSE(line.is_behind());
  line.send(RequestEnded{.id = 1, .reason = FinishReason::kLength, .error = {}});
  line.flush(Deadline::after(30_s));
  client.join();
  ASSERT_EQ(events.size(), kEvents + 1U);
  for (std::int64_t i = 0; i < kEvents; ++i) {
    EXPECT_EQ(std::get<LogitsEvent>(events[static_cast<std::size_t>(i)]).position, i);
  }
  EXPECT_TRUE(std::holds_alternative<RequestEnded>(events.back()));
}

TEST(ClientConnection, HearsWhileTheClientDoesNotRead) {
  EngineSocketPair ends = make_engine_sockets();
  ClientConnection line(std::move(ends.of_engine));
  for (std::int64_t i = 0; i < 100; ++i) line.send(some_logits(i));
  ends.of_client.send_all(encode(ClientMessage{CancelRequest{1}}), Deadline::after(10_s));
  const std::vector<ClientMessage> heard = line.take(10_s);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(std::get<CancelRequest>(heard[0]).id, 1U);
}

TEST(ClientConnection, ALineThatLostItsStepIsClosedAndWhatCameBeforeIsTaken) {
  EngineSocketPair ends = make_engine_sockets();
  ClientConnection line(std::move(ends.of_engine));
  ends.of_client.send_all(encode(ClientMessage{CancelRequest{1}}) + "HTTP/1.1 200", Deadline::after(10_s));
  EXPECT_EQ(line.take(10_s).size(), 1U);
  EXPECT_TRUE(line.closed());
}

TEST(ClientConnection, AClientThatGoesIsNoticedAndOwedNothing) {
  EngineSocketPair ends = make_engine_sockets();
  ClientConnection line(std::move(ends.of_engine));
  for (std::int64_t i = 0; i < 100; ++i) line.send(some_logits(i));
  ends.of_client.close();
  line.take(10_s);
  EXPECT_TRUE(line.closed());
  EXPECT_FALSE(line.is_behind());
  line.flush(Deadline::never());
}

}  // namespace
}  // namespace yoke::engine
