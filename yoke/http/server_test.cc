#include "yoke/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "yoke/http/plain_client.h"

namespace yoke::http {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// What a server sends until it closes, or is silent for so long.
std::string read_until(Socket& socket, std::string_view end, Seconds limit = 5_s) {
  std::string text;
  const Deadline deadline = Deadline::after(limit);
  while (!deadline.expired() && (end.empty() || text.find(end) == std::string::npos)) {
    pollfd waited{.fd = socket.fd(), .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, deadline.poll_timeout_ms(50)) <= 0) continue;
    char buffer[4096];
    const ssize_t count = recv(socket.fd(), buffer, sizeof buffer, 0);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

void answer(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (request.path == "/stream") {
    exchange->start_stream({.content_type = "text/event-stream"});
    for (int i = 0; i < 3; ++i) exchange->write("data: x\n\n");
    return exchange->end();
  }
  exchange->respond({.content_type = "text/plain", .body = request.method + " " + request.path + " " + request.body});
}

struct HttpServer : testing::Test {
  ServerOptions options;
  std::optional<Server> server;
  void start(Handler handler = answer) { server.emplace(options, std::move(handler)); }
  Socket connect() const { return connect_tcp(server->local(), {}, Deadline::after(2_s)); }
  std::string say(std::string_view text) const {
    Socket socket = connect();
    socket.send_all(text, Deadline::after(2_s));
    return read_until(socket, {});
  }
  template <class Condition>
  static bool comes_true(const Condition& condition, Seconds limit = 5_s) {
    for (const Deadline deadline = Deadline::after(limit); !deadline.expired();) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }
};

TEST_F(HttpServer, AnswersAndKeepsTheConnection) {
  start();
  Socket socket = connect();
  for (const char* path : {"/a", "/b"}) {
    socket.send_all(fmt::format("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", path), Deadline::after(1_s));
    EXPECT_THAT(read_until(socket, path), HasSubstr("Content-Length: 7\r\n"));
  }
  EXPECT_EQ(server->counts().requests, 2U);
}

TEST_F(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  start();
  std::string all;
  for (int i = 0; i < 20; ++i) all += fmt::format("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", i);
  const std::string text = say(all + "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::size_t at = 0;
  for (int i = 0; i < 20; ++i) {
    at = text.find(fmt::format("GET /{} ", i), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_NE(text.find("GET /end", at), std::string::npos);
}

TEST_F(HttpServer, StreamsInChunksAndToVersion10UntilTheEnd) {
  start();
  const std::string chunked = say("GET /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(chunked, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(chunked, HasSubstr("9\r\ndata: x\n\n\r\n9\r\ndata: x\n\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n"));
  const std::string plain = say("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_THAT(plain, Not(HasSubstr("chunked")));
  EXPECT_THAT(plain, HasSubstr("\r\n\r\ndata: x\n\ndata: x\n\ndata: x\n\n"));
}

TEST_F(HttpServer, AddsHeadersToWhateverAnswerThereIs) {
  start([](const std::shared_ptr<Exchange>& exchange) {
    exchange->add_header("X-Always", "yes");
    answer(exchange);
  });
  for (const char* path : {"/", "/stream"}) {
    EXPECT_THAT(say(std::string("GET ") + path + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
                HasSubstr("\r\nX-Always: yes\r\n"));
  }
}

TEST_F(HttpServer, HeadHasTheLengthAndNoBody) {
  start();
  const std::string text = say("HEAD /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(text, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(text.ends_with("\r\n\r\n")) << text;
}

TEST_F(HttpServer, SendsContinueBeforeTheBody) {
  start();
  Socket socket = connect();
  socket.send_all("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
                  Deadline::after(1_s));
  EXPECT_EQ(read_until(socket, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  socket.send_all("xy", Deadline::after(1_s));
  EXPECT_THAT(read_until(socket, "xy"), HasSubstr("POST /a xy"));
}

// The rest of such a body still comes: the answer must arrive all the same.
TEST_F(HttpServer, RefusesALargeBodyWithAnAnswerThatArrives) {
  options.limits.body_bytes = 1000;
  start();
  Socket socket = connect();
  socket.send_all("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + std::string(100'000, 'a'),
                  Deadline::after(2_s));
  const std::string text = read_until(socket, {});
  EXPECT_THAT(text, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(text, HasSubstr("\"type\":\"invalid_request_error\""));
  EXPECT_EQ(server->counts().refused, 1U);
}

TEST_F(HttpServer, AnswersAClientThatHasClosedItsSendingSide) {
  std::shared_ptr<Exchange> held;
  std::mutex mutex;
  start([&](const std::shared_ptr<Exchange>& exchange) {
    const std::lock_guard lock(mutex);
    held = exchange;
  });
  Socket socket = connect();
  socket.send_all("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", Deadline::after(1_s));
  shutdown(socket.fd(), SHUT_WR);
  EXPECT_THAT(read_until(socket, "\r\n\r\n"), StartsWith("HTTP/1.1 102 "));
  ASSERT_TRUE(comes_true([&] {
    const std::lock_guard lock(mutex);
    return held != nullptr;
  }));
  EXPECT_FALSE(held->is_over());
  held->respond({.body = "late"});
  EXPECT_THAT(read_until(socket, {}), HasSubstr("late"));
}

TEST_F(HttpServer, NoticesAClientThatLeavesBeforeItsAnswer) {
  std::atomic<int> left{0};
  std::vector<std::shared_ptr<Exchange>> held;
  std::mutex mutex;
  start([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->on_leave([&] { ++left; });
    if (exchange->request().path == "/stream") exchange->start_stream({});
    const std::lock_guard lock(mutex);
    held.push_back(exchange);
  });
  for (const char* path : {"/a", "/stream"}) {
    Socket socket = connect();
    socket.send_all(fmt::format("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", path), Deadline::after(1_s));
    ASSERT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex);
      return !held.empty();
    }));
    const int wanted = left + 1;
    socket.close();
    EXPECT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex);
      held.back()->write("more");  // a stream finds out when it goes on
      return left == wanted;
    })) << path;
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(held.back()->is_over());
    held.clear();
  }
}

TEST_F(HttpServer, AnswersForAHandlerThatForgets) {
  start([](const std::shared_ptr<Exchange>&) {});
  EXPECT_THAT(say("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServer, GivesUpOnARequestThatDoesNotCome) {
  options.head_time = 300_ms;
  options.body_time = 300_ms;
  start();
  EXPECT_THAT(say("GET / HTTP/1.1\r\nHost:"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServer, ClosesTheLongestIdleConnectionWhereThereAreTooMany) {
  options.connections_max = 10;
  start();
  std::vector<Socket> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(connect());
  EXPECT_THAT(say("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), HasSubstr("GET /a"));
  EXPECT_LE(server->counts().connections, 11U);
}

// A client that asks for much and reads nothing costs a bounded amount of memory, and then its connection.
TEST_F(HttpServer, ClosesAConnectionThatAChildProcessSharesAndTakesTheNext) {
  start();
  std::optional<Socket> first = connect();
  first->send_all("GET /first HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", Deadline::after(1_s));
  ASSERT_THAT(read_until(*first, "/first"), HasSubstr("200 OK"));
  const pid_t child = fork();  // shares all descriptors, as before the exec of a program
  if (child == 0) {
    close(first->fd());
    for (;;) pause();
  }
  first.reset();
  EXPECT_TRUE(comes_true([&] { return server->counts().connections == 0; }));
  for (int i = 0; i < 20; ++i) {  // the number of the first descriptor is free again
    EXPECT_THAT(say("GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), HasSubstr("GET /next")) << i;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// As a client that is killed: without a word. Its descriptor stays, so that the server's next one is another.
void reset(const Socket& socket) {
  const sockaddr none{.sa_family = AF_UNSPEC, .sa_data = {}};
  EXPECT_EQ(::connect(socket.fd(), &none, sizeof none), 0);
}

// Three things happen while the server is busy: it writes to a stream, a client comes, and the stream's client is gone.
// Writing closes the stream's connection, and the client that comes gets its descriptor. What is known of the stream's
// client after that is not about this one.
TEST_F(HttpServer, DoesNotTakeEventsOfAClosedConnectionForThoseOfTheNext) {
  std::shared_ptr<Exchange> stream, held;
  std::mutex mutex;  // of these
  std::atomic<bool> is_blocked{false}, goes_on{false};
  start([&](const std::shared_ptr<Exchange>& exchange) {
    const std::lock_guard lock(mutex);
    if (exchange->request().path == "/blocks") {
      exchange->on_leave([&] {
        is_blocked = true;
        comes_true([&] { return goes_on.load(); }, 20_s);
      });
      exchange->start_stream({});
      held = exchange;
      return;
    }
    if (exchange->request().path != "/stream") return answer(exchange);
    stream = exchange;
    exchange->start_stream({});
  });
  Socket watching = connect();
  watching.send_all("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n", Deadline::after(1_s));
  ASSERT_THAT(read_until(watching, "\r\n\r\n"), HasSubstr("200 OK"));
  Socket blocking = connect();
  blocking.send_all("GET /blocks HTTP/1.1\r\nHost: h\r\n\r\n", Deadline::after(1_s));
  ASSERT_THAT(read_until(blocking, "\r\n\r\n"), HasSubstr("200 OK"));
  reset(blocking);
  ASSERT_TRUE(comes_true([&] { return is_blocked.load(); }));
  {
    const std::lock_guard lock(mutex);
    stream->write("more");
  }
  Socket next = connect();
  next.send_all("GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", Deadline::after(1_s));
  reset(watching);
  goes_on = true;
  EXPECT_THAT(read_until(next, {}), HasSubstr("GET /next"));
  server.reset();  // before what its threads refer to
}

TEST_F(HttpServer, CutsOffAStreamThatNobodyReads) {
  options.unsent_max = 1 << 20;
  options.limits.body_bytes = 1 << 10;
  std::atomic<bool> was_cut{false};
  start([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({});
    for (int i = 0; i < 20'000 && !exchange->is_over(); ++i) {
      exchange->write(std::string(4096, 'x'));
      if (i % 64 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    was_cut = exchange->is_over();
    exchange->end();
  });
  Socket socket = connect();
  socket.send_all("GET / HTTP/1.1\r\nHost: h\r\n\r\n", Deadline::after(1_s));
  EXPECT_TRUE(comes_true([&] { return was_cut.load(); }, 20_s));
}

TEST_F(HttpServer, DrainsByFinishingWhatItHas) {
  std::shared_ptr<Exchange> held;
  std::mutex mutex;
  start([&](const std::shared_ptr<Exchange>& exchange) {
    const std::lock_guard lock(mutex);
    held = exchange;
  });
  Socket socket = connect();
  Socket idle = connect();
  socket.send_all("GET / HTTP/1.1\r\nHost: h\r\n\r\n", Deadline::after(1_s));
  ASSERT_TRUE(comes_true([&] {
    const std::lock_guard lock(mutex);
    return held != nullptr && server->counts().connections == 2;
  }));
  EXPECT_EQ(server->counts().exchanges, 1U);
  const Endpoint endpoint = server->local();
  server->drain();
  EXPECT_EQ(read_until(idle, {}), "");
  ASSERT_TRUE(comes_true([&] { return !try_to([&] { connect_tcp(endpoint, {}, Deadline::after(100_ms)); }); }));
  {
    const std::lock_guard lock(mutex);
    held->respond({.body = "done"});
  }
  const std::string text = read_until(socket, {});
  EXPECT_THAT(text, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(text, HasSubstr("done"));
  EXPECT_TRUE(comes_true([&] { return server->counts().exchanges == 0; }));
}

}  // namespace
}  // namespace yoke::http
