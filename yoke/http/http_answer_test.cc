#include "yoke/http/http_answer.h"

#include <gtest/gtest.h>

#include <thread>

#include "yoke/base/error_testing.h"
#include "yoke/http/plain_client.h"

namespace yoke::http {
namespace {

HttpAnswer read_all(std::string_view text, std::size_t piece = 1) {
  AnswerReader reader;
  for (std::size_t i = 0; i < text.size(); i += piece) reader.take(text.substr(i, piece));
  reader.take_end();
  return reader.answer();
}

TEST(HttpAnswer, IsReadByLengthInChunksAndUpToTheEnd) {
  for (const std::size_t piece : {1U, 3U, 1000U}) {
    EXPECT_EQ(read_all("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", piece).body, "hello");
    EXPECT_EQ(
        read_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\n\r\n", piece)
            .body,
        "helloabc");
    EXPECT_EQ(read_all("HTTP/1.0 503 Busy\r\nRetry-After: 3\r\n\r\nlater", piece).body, "later");
  }
  const HttpAnswer busy = read_all("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-AFTER: 3\r\n\r\n");
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.header("retry-after"), "3");
  EXPECT_EQ(busy.header("etag"), std::nullopt);
}

TEST(HttpAnswer, RefusesWhatIsNoHttp) {
  EXPECT_ERROR(read_all("SSH-2.0-OpenSSH_9.2\r\n\r\n"), ErrorCode::kInvalid, "no HTTP");
  EXPECT_ERROR(read_all("HTTP/1.1 2x0 OK\r\n\r\n"), ErrorCode::kInvalid, "its status");
  EXPECT_ERROR(read_all("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), ErrorCode::kInvalid, "its length");
  EXPECT_ERROR(read_all("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), ErrorCode::kInvalid, "a chunk");
  EXPECT_ERROR(read_all("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), ErrorCode::kUnavailable, "complete");
  EXPECT_ERROR(read_all("HTTP/1.1 200 OK\r\n\r\n" + std::string(17 << 20, 'x'), 1 << 20), ErrorCode::kExhausted,
               "16 MiB");
  EXPECT_ERROR(read_all(std::string(70 << 10, 'x'), 1 << 10), ErrorCode::kExhausted, "head");
}

TEST(PlainClient, AsksAndGivesUpAtTheDeadline) {
  using namespace literals;
  Socket listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint server = listener.local();
  std::thread answers([&] {
    Socket client = listener.accept(Deadline::after(5_s));
    std::string got(35, ' ');
    client.receive_exact(std::as_writable_bytes(std::span(got)), Deadline::after(5_s));
    EXPECT_TRUE(got.starts_with("POST /v1/completions HTTP/1.1\r\nHost")) << got;
    client.send_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Deadline::after(5_s));
  });
  EXPECT_EQ(ask(server, {"POST", "/v1/completions", "{}"}, Deadline::after(5_s)).body, "{}");
  answers.join();
  // Nobody accepts now: the kernel takes the connection, and no answer comes.
  EXPECT_ERROR(ask(server, {}, Deadline::after(Seconds{0.3})), ErrorCode::kTimeout, "in time");
  listener.close();
  EXPECT_ERROR(ask(server, {}, Deadline::after(1_s)), ErrorCode::kUnavailable, "");
}

}  // namespace
}  // namespace yoke::http
