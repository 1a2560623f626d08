// An HTTP/1.1 server: keep-alive, pipelining, streamed answers, limits on everything that an unknown client can send,
// slow and half-closed clients. One thread moves bytes; worker threads run the handler.
//
//   Server server({.listen = {"127.0.0.1", 8000}}, [](const std::shared_ptr<Exchange>& exchange) {
//     exchange->respond({.status = 200, .content_type = "text/plain", .body = "hello\n"});
//   });
//
// A handler may keep the Exchange and answer later, from any thread.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/http/http_request.h"

namespace yoke::http {

struct ServerOptions {
  Endpoint listen{"127.0.0.1", 0};
  RequestLimits limits = {};
  std::size_t connections_max = 16'384;  // beyond, the one that has been idle longest is closed
  Seconds head_time{20};                 // from a request's first byte to the end of its head
  Seconds body_time{60};                 // likewise, to the end of its body
  Seconds idle_time{75};                 // between two requests
  Seconds write_time{60};                // in which a client that is sent something takes nothing of it
  std::size_t unsent_max = 8 << 20;      // of one connection: a stream that nobody reads is cut off
  int workers = 2;
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  HeaderList headers = {};
  std::string body = {};
};

class Connection;

// What became of a request, for a log.
struct ExchangeReport {
  int status = 0;  // 0: the client left before its answer began
  bool is_complete = false;
  double seconds = 0;
  HeaderList notes = {};  // what the handler said about it
};

// One request and its answer. Every function may be called from any thread; what comes after the answer's end, or after
// the client has left, is ignored.
class Exchange {
 public:
  Exchange(std::shared_ptr<Connection> connection, std::uint64_t number, HttpRequest request);
  ~Exchange();  // without an answer: status 500

  const HttpRequest& request() const { return request_; }
  const std::string& client_address() const;

  // Headers of whatever answer it gets. Before the answer; by the handler's thread alone.
  void add_header(std::string name, std::string value);

  void respond(const Reply& reply);  // the whole answer
  // Or piece by piece: `start` with an empty body, any number of pieces, the end.
  void start_stream(const Reply& start);
  void write(std::string_view piece);
  void end();

  // For its report. By one thread after the other.
  void note(std::string name, std::string value) { notes_.emplace_back(std::move(name), std::move(value)); }
  // Called once, when nobody has the exchange any more.
  void on_report(std::function<void(const Exchange&, const ExchangeReport&)> call) { report_ = std::move(call); }

  bool is_over() const;  // answered, or the client has left
  // Called once, from another thread, where the client leaves before the answer's end; at once where it has left.
  void on_leave(std::function<void()> call);

 private:
  bool is_open() const;

  const std::shared_ptr<Connection> connection_;
  const std::uint64_t number_;  // of this request on its connection
  const HttpRequest request_;
  const Instant came_ = real_clock().now();
  HeaderList headers_, notes_;
  int status_ = 0;            // under the connection's mutex
  bool is_complete_ = false;  // likewise
  std::function<void(const Exchange&, const ExchangeReport&)> report_;
};

using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

struct ServerCounts {
  std::size_t connections = 0;  // open now
  std::size_t exchanges = 0;    // requests that are not answered yet
  std::uint64_t requests = 0;   // since the start
  std::uint64_t refused = 0;    // of those that were no HTTP, or too large
};

class Server {
 public:
  Server(const ServerOptions& options, Handler handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // closes all connections

  Endpoint local() const;
  ServerCounts counts() const;
  // No new connections, and each one that is there ends with its answer.
  void drain();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

std::string_view reason_phrase(int status);
// The answer to what is no request, in the shape that clients of OpenAI's API read.
std::string plain_error_json(std::string_view message, std::string_view type);

}  // namespace yoke::http
