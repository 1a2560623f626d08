// A stretch of cable for tests: forwards TCP connections to a rank's port until it is cut (silence) or broken (closed).
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "yoke/base/socket.h"

namespace yoke::comm {

class TestProxy {
 public:
  explicit TestProxy(Endpoint to) : to_(std::move(to)), listener_(listen_tcp({"127.0.0.1", 0})) {
    thread_ = std::thread([this] { run(); });
  }
  ~TestProxy() {
    state_ = State::kEnd;
    thread_.join();
  }
  Endpoint endpoint() const { return listener_.local(); }
  void cut() { state_ = State::kCut; }       // nothing passes any more
  void close() { state_ = State::kBroken; }  // all connections end
  void slow_down(double bytes_per_second) { rate_ = bytes_per_second; }
  void break_after(std::size_t bytes) { bytes_left_ = static_cast<std::int64_t>(bytes); }  // from now on

 private:
  enum class State { kForwards, kCut, kBroken, kEnd };
  struct Line {
    Socket in, out;
  };

  void run() {
    std::list<Line> lines;
    while (state_ != State::kEnd) {
      if (state_ == State::kBroken) lines.clear();
      if (state_ != State::kForwards) {
        real_clock().sleep({0.002});
        continue;
      }
      std::vector<pollfd> waits = {{listener_.fd(), POLLIN, 0}};
      for (const Line& line : lines) {
        waits.push_back({line.in.fd(), POLLIN, 0});
        waits.push_back({line.out.fd(), POLLIN, 0});
      }
      poll(waits.data(), waits.size(), 5);
      if (waits[0].revents != 0) {
        if (const auto in = try_to([&] { return listener_.accept(Deadline::after({0.1})); }); in) accept(lines, in);
      }
      std::erase_if(lines, [&](Line& line) { return !forward(line.in, line.out) || !forward(line.out, line.in); });
    }
  }
  void accept(std::list<Line>& lines, const Result<Socket>& in) {
    auto out = try_to([&] { return connect_tcp(to_, {}, Deadline::after({1})); });
    if (out) lines.push_back({std::move(const_cast<Result<Socket>&>(in)).value(), std::move(*out)});
  }
  // False once one end has closed.
  bool forward(Socket& from, Socket& to) {
    std::vector<char> bytes(rate_ > 0 ? 32 << 10 : 256 << 10);
    const ssize_t count = recv(from.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (bytes_left_ >= 0 && (bytes_left_ -= count) < 0) {
      state_ = State::kBroken;
      return false;
    }
    for (ssize_t sent = 0; sent < count && state_ == State::kForwards;) {
      const ssize_t more = send(to.fd(), bytes.data() + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
      if (more > 0) sent += more;
      if (more < 0 && errno != EAGAIN) return false;
      if (more < 0) real_clock().sleep({0.0002});
    }
    if (rate_ > 0) real_clock().sleep({static_cast<double>(count) / rate_});
    return true;
  }

  Endpoint to_;
  Socket listener_;
  std::atomic<State> state_{State::kForwards};
  std::atomic<std::int64_t> bytes_left_{-1};
  std::atomic<double> rate_{0};  // 0: as fast as it goes
  std::thread thread_;
};

}  // namespace yoke::comm
