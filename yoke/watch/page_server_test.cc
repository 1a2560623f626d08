#include "yoke/watch/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "yoke/base/socket_testing.h"
#include "yoke/watch/sample_testing.h"

namespace yoke::watch {
namespace {

using namespace literals;
using testing::StartsWith;

std::string get(const PageServer& server, const std::string& path, const std::string& host) {
  Socket socket = connect_tcp({"127.0.0.1", server.local().port}, {}, Deadline::after(5_s));
  socket.send_all("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n", Deadline::after(5_s));
  std::string answer;
  for (std::array<std::byte, 4096> buffer;;) {
    const std::size_t count = receive_some(socket, buffer, Deadline::after(5_s));
    if (count == 0) return answer;
    answer.append(reinterpret_cast<const char*>(buffer.data()), count);
  }
}

TEST(PageServer, IsNotReadByThePagesOfOtherSites) {
  const PageServer server({"127.0.0.1", 0}, Exposed::kAll);
  for (const char* path : {"/", "/board.json", "/cables.json", "/events", "/watch.js"}) {
    EXPECT_THAT(get(server, path, "evil.example:80"), StartsWith("HTTP/1.1 403 ")) << path;
    EXPECT_THAT(get(server, path, "127.0.0.1.evil.example"), StartsWith("HTTP/1.1 403 ")) << path;
  }
  for (const char* host : {"localhost", "localhost:9400", "127.0.0.1:9400", "127.1.2.3", "[::1]:9400"}) {
    EXPECT_THAT(get(server, "/board.json", host), StartsWith("HTTP/1.1 200 ")) << host;
  }
  EXPECT_THAT(get(server, "/metrics", "spark-1:9400"), StartsWith("HTTP/1.1 200 ")) << "a Prometheus behind a proxy";
}

Socket open_events(const PageServer& server) {
  Socket socket = connect_tcp({"127.0.0.1", server.local().port}, {}, Deadline::after(5_s));
  socket.send_all("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", Deadline::after(5_s));
  std::array<std::byte, 12> head{};  // "HTTP/1.1 200": the server knows of it
  socket.receive_exact(head, Deadline::after(5_s));
  return socket;
}

// Its events wait in memory up to a limit; then it is cut off. Who reads goes on watching.
TEST(PageServer, CutsOffAClientThatDoesNotRead) {
  PageServer server({"127.0.0.1", 0}, Exposed::kAll);
  Board board(plan_of_two());
  begin(board);
  Sample sample = sample_at(0);
  sample.sensors.resize(4, {.chip = std::string(1 << 16, 'x'), .name = "so that events are large", .celsius = 40});
  board.take(observe(0, 0, sample));
  const Socket deaf = open_events(server);
  Socket reader = open_events(server);
  std::vector<std::byte> buffer(1 << 20);
  EXPECT_EQ(server.watchers(), 2U);
  std::size_t received = 0;
  for (int i = 0; i < 1000 && server.watchers() > 1; ++i) {
    server.publish(board);
    while (const std::size_t count = receive_some(reader, buffer, Deadline::after(2_ms))) received += count;
  }
  EXPECT_EQ(server.watchers(), 1U);
  EXPECT_GT(received, std::size_t{8} << 20) << "what the server holds for one who does not read";
  server.publish(board);
  EXPECT_GT(receive_some(reader, buffer, Deadline::after(10_s)), 0U);
}

TEST(PageServer, ThatListensForOthersHasAnyName) {
  const PageServer server({"0.0.0.0", 0}, Exposed::kAll);
  EXPECT_THAT(get(server, "/board.json", "spark-1:9400"), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace yoke::watch
