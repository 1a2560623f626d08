#include "yoke/http/http_request.h"

#include <gtest/gtest.h>

namespace yoke::http {
namespace {

std::optional<HttpRequest> read_one(std::string_view text) {
  RequestReader reader({});
  reader.take(text);
  auto request = reader.next();
  EXPECT_FALSE(reader.refusal()) << reader.refusal()->why;
  return request;
}

int refused_with(std::string_view text, const RequestLimits& limits = {}) {
  RequestReader reader(limits);
  reader.take(text);
  while (reader.next()) {
  }
  return reader.refusal() ? reader.refusal()->status : 0;
}

TEST(HttpRequest, ReadsMethodPathQueryHeadersAndBody) {
  const auto request =
      read_one("POST /v1/a%20b?x=1&y HTTP/1.1\r\nHost: h\r\nX-Name:  two words \r\nContent-Length: 5\r\n\r\nhello");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->path, "/v1/a b");
  EXPECT_EQ(request->query, "x=1&y");
  EXPECT_EQ(request->header("x-name"), "two words");
  EXPECT_EQ(request->body, "hello");
  EXPECT_TRUE(request->keep_alive);
}

TEST(HttpRequest, ReadsChunksWithExtensionsAndTrailer) {
  const auto request = read_one(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\nA\r\n0123456789\r\n0\r\nx: "
      "y\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->body, "hello0123456789");
}

TEST(HttpRequest, ReadsPipelinedRequestsOneByOne) {
  RequestReader reader({});
  reader.take("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /c");
  EXPECT_EQ(reader.next()->path, "/a");
  const auto second = reader.next();
  EXPECT_EQ(second->path, "/b");
  EXPECT_FALSE(second->keep_alive);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.has_begun());
}

TEST(HttpRequest, OfVersion10EndsTheConnectionUnlessItSaysOtherwise) {
  EXPECT_FALSE(read_one("GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_TRUE(read_one("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")->keep_alive);
}

TEST(HttpRequest, WantsAContinueOnce) {
  RequestReader reader({});
  reader.take("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.take_continue_wanted());
  EXPECT_FALSE(reader.take_continue_wanted());
  reader.take("ab");
  EXPECT_EQ(reader.next()->body, "ab");
}

// Each is a form by which a request was hidden in another one's body somewhere (RFC 9112, 11.2).
TEST(HttpRequest, RefusesWhatTwoServersCouldReadInTwoWays) {
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  for (const std::string& head : {
           start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
           start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
           start + "Content-Length: 5, 5\r\n\r\n",
           start + "Content-Length: +5\r\n\r\n",
           start + "Content-Length: -1\r\n\r\n",
           start + "Content-Length: 0x5\r\n\r\n",
           start + "Content-Length:\r\n\r\n",
           start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
           start + "Content-Length : 5\r\n\r\n",
           start + " Content-Length: 5\r\n\r\n",
           start + "X: a\r\n Content-Length: 5\r\n\r\n",
           start + "X: a\nContent-Length: 5\r\n\r\n",
           start + "X: a\rContent-Length: 5\r\n\r\n",
           start + std::string("X: a\0b\r\n\r\n", 10),
           start + "Transfer-Encoding: chunked\r\n\r\n5 5\r\nhello\r\n0\r\n\r\n",
           start + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
           start + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n",
           start + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
           std::string("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
           std::string("GET / HTTP/1.1\nHost: a\n\n"),
           std::string("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
           std::string("GET /%0 HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n"),
           std::string("\x16\x03\x01\x02\r\n\r\n"),
       }) {
    EXPECT_EQ(refused_with(head), 400) << head;
  }
  EXPECT_EQ(refused_with(start + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501);
  EXPECT_EQ(refused_with(start + "Transfer-Encoding: xchunked\r\n\r\n"), 501);
  EXPECT_EQ(refused_with("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(refused_with(start + "Expect: tea\r\n\r\n"), 417);
}

TEST(HttpRequest, HasLimitsOnHeadHeadersAndBody) {
  const RequestLimits limits{.head_bytes = 200, .headers = 3, .body_bytes = 10};
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(refused_with(start + "X: " + std::string(300, 'a'), limits), 431);
  EXPECT_EQ(refused_with(start + "A: 1\r\nB: 1\r\nC: 1\r\n\r\n", limits), 431);
  EXPECT_EQ(refused_with(start + "Content-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(refused_with(start + "Content-Length: 99999999999999999999\r\n\r\n", limits), 400);
  const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refused_with(chunked + "6\r\n123456\r\n5\r\n", limits), 413);
  EXPECT_EQ(refused_with(chunked + "ffffffffffffffff\r\n", limits), 413);
  EXPECT_EQ(refused_with(chunked + std::string(300, '0'), limits), 400);
  EXPECT_EQ(refused_with(chunked + "A\r\n0123456789\r\n0\r\n\r\n", limits), 0);
}

}  // namespace
}  // namespace yoke::http
