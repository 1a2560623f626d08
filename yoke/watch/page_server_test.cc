#include "yoke/watch/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "yoke/base/socket_testing.h"

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

TEST(PageServer, ThatListensForOthersHasAnyName) {
  const PageServer server({"0.0.0.0", 0}, Exposed::kAll);
  EXPECT_THAT(get(server, "/board.json", "spark-1:9400"), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace yoke::watch
