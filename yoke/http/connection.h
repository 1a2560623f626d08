// One client's connection to a Server: what the thread that moves bytes and the exchanges share. Internal to server.cc
// and exchange.cc.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/http/http_request.h"
#include "yoke/http/server.h"

namespace yoke::http {

// How exchanges reach the thread that moves bytes. It outlives the server where exchanges do.
class OutputWakeup {
 public:
  OutputWakeup();
  int fd() const { return event_.get(); }
  void ring(const std::shared_ptr<Connection>& connection);  // any thread: it has something to send
  void ring() const;
  std::vector<std::shared_ptr<Connection>> take();
  std::atomic<bool> draining{false};

 private:
  UniqueFd event_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Connection>> rung_;
};

class Connection {
 public:
  Connection(UniqueFd fd_given, std::string address_given, const ServerOptions& options,
             std::shared_ptr<OutputWakeup> wakeup_given)
      : fd(std::move(fd_given)),
        address(std::move(address_given)),
        reader(options.limits),
        wakeup(std::move(wakeup_given)) {}

  // Of the server's own thread.
  UniqueFd fd;
  const std::string address;
  RequestReader reader;
  std::uint32_t number = 0;    // among those of the server
  std::uint32_t interest = 0;  // of epoll
  bool is_busy = false;        // a request is being answered
  bool takes_interim = false;  // an answer with a status of 1xx before the real one
  bool has_read_end = false;   // the client sends nothing more
  bool is_closing = false;     // all is sent; what still comes is thrown away
  std::size_t discarded = 0;
  Instant since{};  // the state: idle, reading, closing
  Instant last_write{};

  const std::shared_ptr<OutputWakeup> wakeup;

  // Of all threads, under the mutex.
  std::mutex mutex;
  std::uint64_t exchange = 0;  // the number of the request at hand
  std::string out;
  std::size_t sent = 0;
  bool is_rung = false;       // the server's thread will look
  bool is_lost = false;       // the client has left
  bool is_answered = true;    // the request at hand has its whole answer in `out`
  bool has_head = false;      // of that answer
  bool is_chunked = false;    // its body
  bool is_head_only = false;  // the answer to HEAD
  bool close_after = false;
  std::function<void()> on_leave;
};

}  // namespace yoke::http
