#include "yoke/http/server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <thread>
#include <unordered_map>

#include "yoke/base/error.h"
#include "yoke/http/connection.h"

namespace yoke::http {
using namespace literals;
namespace {

constexpr int kSweepMs = 250;                  // between two looks at deadlines
constexpr Seconds kCloseTime{2};               // for a client to read the last answer before we close
constexpr std::size_t kDiscardMax = 64 << 20;  // of what such a client still sends
constexpr std::size_t kHeldMax = 64 << 10;     // of further requests while one is being answered

// As many descriptors as the system lets us have, less what the rest of the program needs.
std::size_t raised_descriptor_limit(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr std::size_t kOthers = 128;
  const auto can = static_cast<std::size_t>(limit.rlim_cur);
  return std::min(wanted, can > 2 * kOthers ? can - kOthers : can / 2);
}

}  // namespace

class Server::Core {
 public:
  Core(const ServerOptions& options, Handler handler)
      : options_(options),
        handler_(std::move(handler)),
        listener_(listen_tcp(options.listen, {.backlog = 1024})),
        local_(listener_.local()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        connections_max_(raised_descriptor_limit(options.connections_max)) {
    if (!epoll_) throw system_error(errno, "cannot make an epoll descriptor");
    watch(listener_.fd(), EPOLLIN, EPOLL_CTL_ADD);
    watch(bell_->fd(), EPOLLIN, EPOLL_CTL_ADD);
    for (int i = 0; i < options.workers; ++i) workers_.emplace_back([this] { work(); });
    thread_ = std::thread([this] { run(); });
  }

  ~Core() {
    {
      const std::lock_guard lock(queue_mutex_);
      ends_ = true;
    }
    queue_filled_.notify_all();
    bell_->ring();
    thread_.join();
    for (std::thread& worker : workers_) worker.join();
    queue_.clear();  // unanswered: they say so, to connections that are gone
    for (const ConnectionPtr& connection : all()) close(connection);
  }

  Endpoint local() const { return local_; }
  ServerCounts counts() const {
    return {.connections = open_, .exchanges = busy_, .requests = requests_, .refused = refused_};
  }
  void drain() {
    bell_->draining = true;
    bell_->ring();
  }

 private:
  using ConnectionPtr = std::shared_ptr<Connection>;

  // The events of one look may hold some of a connection that is closed before they are taken up, while the next client
  // has its descriptor already: each connection has a number, and so have its events.
  void watch(int fd, std::uint32_t events, int operation, std::uint32_t number = 0) const {
    epoll_event event{.events = events, .data = {.u64 = std::uint64_t{number} << 32 | static_cast<std::uint32_t>(fd)}};
    if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0) throw system_error(errno, "cannot watch a descriptor");
  }

  // ---- the thread that moves bytes

  void run() {
    std::array<epoll_event, 256> events{};
    Instant swept = real_clock().now();
    while (!ends_) {
      const int count = epoll_wait(epoll_.get(), events.data(), events.size(), kSweepMs);
      for (int i = 0; i < count; ++i) {
        const auto& event = events[static_cast<std::size_t>(i)];
        const int fd = static_cast<int>(event.data.u64 & 0xFFFFFFFF);
        if (fd == bell_->fd()) {
          flush_rung();
        } else if (listener_ && fd == listener_.fd()) {
          accept_all();
        } else {
          handle(fd, static_cast<std::uint32_t>(event.data.u64 >> 32), event.events);
        }
      }
      if (bell_->draining && listener_) stop_listening();
      const Instant now = real_clock().now();
      if (to_seconds(now - swept).value * 1000 < kSweepMs) continue;
      swept = now;
      sweep(now);
    }
  }

  void stop_listening() {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.fd(), nullptr);
    listener_.close();
    for (const ConnectionPtr& connection : all()) {
      if (!connection->is_busy && !connection->reader.has_begun()) close(connection);
    }
  }

  std::vector<ConnectionPtr> all() const {
    std::vector<ConnectionPtr> found;
    found.reserve(connections_.size());
    for (const auto& [fd, connection] : connections_) found.push_back(connection);
    return found;
  }

  void accept_all() {
    for (int i = 0; i < 64; ++i) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      const int fd = accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if ((errno == EMFILE || errno == ENFILE) && close_longest_idle()) continue;
        return;
      }
      add(UniqueFd(fd), peer);
      while (connections_.size() > connections_max_ && close_longest_idle()) {
      }
    }
  }

  void add(UniqueFd fd, const sockaddr_storage& peer) {
    const int one = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const int descriptor = fd.get();
    auto connection = std::make_shared<Connection>(std::move(fd), address_text(peer), options_, bell_);
    connection->since = real_clock().now();
    connection->interest = EPOLLIN;
    connection->number = ++last_number_;
    watch(descriptor, EPOLLIN, EPOLL_CTL_ADD, connection->number);
    connections_.emplace(descriptor, std::move(connection));
    open_ = connections_.size();
  }

  static std::string address_text(const sockaddr_storage& peer) {
    std::array<char, NI_MAXHOST> text{};
    const socklen_t size = peer.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&peer), size, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      return "?";
    }
    return text.data();
  }

  bool close_longest_idle() {
    ConnectionPtr oldest;
    for (const auto& [fd, connection] : connections_) {
      if (!connection->is_busy && (!oldest || connection->since < oldest->since)) oldest = connection;
    }
    if (oldest) close(oldest);
    return oldest != nullptr;
  }

  void handle(int fd, std::uint32_t number, std::uint32_t events) {
    const auto found = connections_.find(fd);
    if (found == connections_.end() || found->second->number != number) return;
    const ConnectionPtr connection = found->second;
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) return close(connection);
    if ((events & EPOLLIN) != 0) receive(connection);
    if ((events & EPOLLOUT) != 0 && connection->fd) flush(connection);
  }

  void receive(const ConnectionPtr& connection) {
    std::array<char, 64 << 10> buffer;
    const ssize_t count = recv(connection->fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) close(connection);
      return;
    }
    if (count == 0) return take_end(connection);
    if (connection->is_closing) {
      connection->discarded += static_cast<std::size_t>(count);
      if (connection->discarded > kDiscardMax) close(connection);
      return;
    }
    if (!connection->reader.has_begun() && !connection->is_busy) connection->since = real_clock().now();
    connection->reader.take({buffer.data(), static_cast<std::size_t>(count)});
    advance(connection);
  }

  // The client sends nothing more. It may still read: one that has closed both ways is found out by sending to it, for
  // which HTTP has interim answers that every client passes over.
  void take_end(const ConnectionPtr& connection) {
    if (connection->is_closing || !connection->is_busy) return close(connection);
    connection->has_read_end = true;
    {
      const std::lock_guard lock(connection->mutex);
      connection->close_after = true;
      if (!connection->has_head && !connection->is_answered && connection->takes_interim) {
        connection->out += "HTTP/1.1 102 Processing\r\n\r\n";
      }
    }
    flush(connection);
  }

  // Takes up the next request where none is being answered.
  void advance(const ConnectionPtr& connection) {
    while (connection->fd && !connection->is_busy && !connection->is_closing) {
      if (auto request = connection->reader.next()) {
        begin(connection, *std::move(request));
      } else if (connection->reader.refusal()) {
        ++refused_;
        const RequestRefusal refusal = *connection->reader.refusal();
        refuse(connection, refusal.status, refusal.why);
      } else {
        if (connection->reader.take_continue_wanted()) send_continue(connection);
        break;
      }
    }
    update_interest(connection);
  }

  void send_continue(const ConnectionPtr& connection) {
    {
      const std::lock_guard lock(connection->mutex);
      connection->out += "HTTP/1.1 100 Continue\r\n\r\n";
    }
    flush(connection);
  }

  std::shared_ptr<Exchange> make_exchange(const ConnectionPtr& connection, HttpRequest request) {
    ++requests_;
    ++busy_;
    connection->is_busy = true;
    connection->takes_interim = request.minor_version == 1;
    connection->last_write = real_clock().now();
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(connection->mutex);
      number = ++connection->exchange;
      connection->is_answered = false;
      connection->has_head = false;
      connection->close_after = connection->has_read_end;
    }
    return std::make_shared<Exchange>(connection, number, std::move(request));
  }

  void begin(const ConnectionPtr& connection, HttpRequest request) {
    auto exchange = make_exchange(connection, std::move(request));
    {
      const std::lock_guard lock(queue_mutex_);
      queue_.push_back(std::move(exchange));
    }
    queue_filled_.notify_one();
  }

  void refuse(const ConnectionPtr& connection, int status, const std::string& why) {
    HttpRequest request;
    request.keep_alive = false;
    const auto exchange = make_exchange(connection, std::move(request));
    exchange->respond({.status = status, .body = plain_error_json(why, "invalid_request_error")});
  }

  void flush_rung() {
    for (const ConnectionPtr& connection : bell_->take()) {
      if (connection->fd) flush(connection);
    }
  }

  void flush(const ConnectionPtr& connection) {
    bool is_done = false;
    bool closes = false;
    bool is_broken = false;
    {
      const std::lock_guard lock(connection->mutex);
      Connection& c = *connection;
      c.is_rung = false;
      while (c.sent < c.out.size()) {
        const ssize_t count = send(c.fd.get(), c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
          is_broken = errno != EAGAIN;
          break;
        }
        c.sent += static_cast<std::size_t>(count);
        c.last_write = real_clock().now();
      }
      if (c.sent == c.out.size() || c.sent > c.out.size() / 2) {
        c.out.erase(0, c.sent);
        c.sent = 0;
      }
      is_broken = is_broken || c.out.size() > options_.unsent_max + options_.limits.body_bytes;
      is_done = c.is_answered && c.out.empty() && c.is_busy;
      closes = c.close_after;
    }
    if (is_broken) return close(connection);
    if (is_done) finish(connection, closes);
    if (connection->fd) update_interest(connection);
  }

  // The request at hand is answered, and the answer is sent.
  void finish(const ConnectionPtr& connection, bool closes) {
    --busy_;
    connection->is_busy = false;
    connection->since = real_clock().now();
    if (!closes && !(bell_->draining && !connection->reader.has_begun())) return advance(connection);
    // Closed at once, what the client still sends would make its system throw our answer away.
    if (connection->has_read_end) return close(connection);
    shutdown(connection->fd.get(), SHUT_WR);
    connection->is_closing = true;
  }

  void update_interest(const ConnectionPtr& connection) {
    if (!connection->fd) return;
    bool has_output = false;
    {
      const std::lock_guard lock(connection->mutex);
      has_output = connection->sent < connection->out.size();
    }
    const bool is_full = connection->is_busy && connection->reader.held() > kHeldMax;
    std::uint32_t wanted = connection->has_read_end || is_full ? 0U : std::uint32_t{EPOLLIN};
    if (has_output) wanted |= EPOLLOUT;
    if (wanted == connection->interest) return;
    connection->interest = wanted;
    watch(connection->fd.get(), wanted, EPOLL_CTL_MOD, connection->number);
  }

  void close(const ConnectionPtr& connection) {
    if (!connection->fd) return;
    connections_.erase(connection->fd.get());
    open_ = connections_.size();
    // A child of this process that has not executed its program yet shares the descriptor: closing alone would neither
    // end the connection nor its events, which would then be taken for those of the next one with this number.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->fd.get(), nullptr);
    shutdown(connection->fd.get(), SHUT_RDWR);
    connection->fd.reset();
    if (std::exchange(connection->is_busy, false)) --busy_;
    std::function<void()> left;
    {
      const std::lock_guard lock(connection->mutex);
      connection->is_lost = true;
      left = std::exchange(connection->on_leave, nullptr);
      connection->out = {};
      connection->sent = 0;
    }
    if (left) left();
  }

  void sweep(Instant now) {
    for (const ConnectionPtr& connection : all()) {
      const Seconds time = to_seconds(now - connection->since);
      if (connection->is_closing) {
        if (time > kCloseTime) close(connection);
      } else if (connection->is_busy) {
        const bool has_output = (connection->interest & EPOLLOUT) != 0;
        if (has_output && to_seconds(now - connection->last_write) > options_.write_time) close(connection);
      } else if (!connection->reader.has_begun()) {
        if (time > options_.idle_time) close(connection);
      } else if (time > (connection->reader.is_in_body() ? options_.body_time : options_.head_time)) {
        ++refused_;
        refuse(connection, 408, "the request did not come in time");
      }
    }
  }

  // ---- the threads that answer

  void work() {
    while (true) {
      std::shared_ptr<Exchange> exchange;
      {
        std::unique_lock lock(queue_mutex_);
        queue_filled_.wait(lock, [this] { return ends_ || !queue_.empty(); });
        if (ends_) return;
        exchange = std::move(queue_.front());
        queue_.pop_front();
      }
      if (exchange->is_over()) continue;
      try {
        handler_(exchange);
      } catch (const std::exception& error) {
        exchange->respond({.status = 500, .body = plain_error_json(error.what(), "server_error")});
      }
    }
  }

  const ServerOptions options_;
  const Handler handler_;
  Socket listener_;
  const Endpoint local_;
  UniqueFd epoll_;
  const std::size_t connections_max_;
  const std::shared_ptr<OutputWakeup> bell_ = std::make_shared<OutputWakeup>();
  std::unordered_map<int, ConnectionPtr> connections_;  // by descriptor; of the thread that moves bytes
  std::uint32_t last_number_ = 0;                       // likewise
  std::atomic<std::size_t> open_{0}, busy_{0};
  std::atomic<std::uint64_t> requests_{0}, refused_{0};
  std::atomic<bool> ends_{false};
  std::mutex queue_mutex_;
  std::condition_variable queue_filled_;
  std::deque<std::shared_ptr<Exchange>> queue_;
  std::vector<std::thread> workers_;
  std::thread thread_;  // last: it uses the above
};

Server::Server(const ServerOptions& options, Handler handler)
    : core_(std::make_unique<Core>(options, std::move(handler))) {}
Server::~Server() = default;
Endpoint Server::local() const { return core_->local(); }
ServerCounts Server::counts() const { return core_->counts(); }
void Server::drain() { core_->drain(); }

}  // namespace yoke::http
