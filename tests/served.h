// A server for one test: the built program with its own port, ended by SIGTERM with this.
#pragma once
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <thread>

#include "tests/engine_fixture.h"
#include "yoke/base/process.h"
#include "yoke/base/socket.h"
#include "yoke/base/text.h"
#include "yoke/http/http_answer.h"
#include "yoke/http/plain_client.h"

namespace yoke::tests {

struct ServedHow {
  std::vector<std::string> model = {kNano, "--threads", "1"};
  int port = 0;
  std::vector<std::string> more = {};
};

struct Served {
  explicit Served(std::vector<std::string> more = {}) : Served(ServedHow{.more = std::move(more)}) {}
  explicit Served(const ServedHow& how) {
    std::vector<std::string> argv = {YOKE_PROGRAM, "serve", "--port", std::to_string(how.port)};
    argv.insert(argv.end(), how.model.begin(), how.model.end());
    argv.insert(argv.end(), how.more.begin(), how.more.end());
    process.emplace(Command{.argv = argv, .environment = {{"YOKE_TEST_MARK", mark}}, .folder = scratch.path()});
    const std::string line = err_until("http://127.0.0.1:", Seconds{30});
    port = std::atoi(line.substr(line.find("http://127.0.0.1:") + 17).c_str());
  }
  ~Served() {
    if (!ended) end();
  }

  // Standard error, until it has a text.
  std::string err_until(std::string_view text, Seconds limit) {
    for (const Deadline deadline = Deadline::after(limit); !deadline.expired() && !process->at_end();) {
      err += process->read_bytes(OutputStream::kErr, 4096, Deadline::after(Seconds{0.1}));
      if (err.find(text) != std::string::npos) break;
    }
    EXPECT_NE(err.find(text), std::string::npos) << err;
    return err;
  }
  // As a machine that loses power: nothing is said to anybody.
  void kill() {
    ended = true;
    ::kill(process->pid(), SIGKILL);
    process->wait(Deadline::after(Seconds{10}));
  }
  // Its exit status after SIGTERM; nothing where it does not end.
  std::optional<int> end() {
    ended = true;
    ::kill(process->pid(), SIGTERM);
    const auto outcome = process->wait(Deadline::after(Seconds{40}));
    if (outcome) err += outcome->err;
    return outcome ? std::optional(outcome->exit_status) : std::nullopt;
  }
  Served& wait_until_ready() {
    for (const Deadline deadline = Deadline::after(Seconds{60}); !deadline.expired();) {
      if (get("/ready").status == 200) return *this;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "not ready: " << err_until("", Seconds{0.1});
    return *this;
  }

  Endpoint endpoint() const { return {"127.0.0.1", port}; }
  http::HttpAnswer get(const std::string& path) const {
    return http::ask(endpoint(), {.path = path}, Deadline::after(Seconds{30}));
  }
  http::HttpAnswer post(const std::string& path, const std::string& body) const {
    return http::ask(endpoint(), {.method = "POST", .path = path, .body = body}, Deadline::after(Seconds{60}));
  }
  // The bytes that come back, until the server closes.
  std::string say(std::string_view text, Seconds limit = {10}) const {
    Socket socket = connect_tcp(endpoint(), {}, Deadline::after(Seconds{2}));
    socket.send_all(text, Deadline::after(limit));
    std::string out;
    for (const Deadline deadline = Deadline::after(limit); !deadline.expired();) {
      pollfd waited{.fd = socket.fd(), .events = POLLIN, .revents = 0};
      if (poll(&waited, 1, deadline.poll_timeout_ms(50)) <= 0) continue;
      char buffer[8192];
      const ssize_t count = recv(socket.fd(), buffer, sizeof buffer, 0);
      if (count <= 0) break;
      out.append(buffer, static_cast<std::size_t>(count));
    }
    return out;
  }

  const ScratchDir scratch{"yoke-serve-test"};  // where no cluster file is
  const std::string mark = random_token_hex(8);
  std::optional<Process> process;
  std::string err;
  bool ended = false;
  int port = 0;
};

// The events of a stream without "[DONE]", which must be the last.
inline std::vector<Document> stream_events(const std::string& body) {
  std::vector<Document> events;
  bool is_done = false;
  for (const std::string& line : split(body, '\n')) {
    if (!line.starts_with("data: ")) continue;
    EXPECT_FALSE(is_done) << "an event after [DONE]";
    is_done = line == "data: [DONE]";
    if (!is_done) events.push_back(parse_json(line.substr(6), "event"));
  }
  EXPECT_TRUE(is_done) << body;
  return events;
}

inline const Document& at(const Document& document, std::string_view key) {
  const Document* found = document.find(key);
  if (!found) throw Error(ErrorCode::kNotFound, fmt::format("no '{}' in {}", key, print_json(document)));
  return *found;
}

}  // namespace yoke::tests
