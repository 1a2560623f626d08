#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/json.h"
#include "yoke/http/connection.h"
#include "yoke/http/server.h"

namespace yoke::http {
namespace {

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(text, size);
}

std::string head_text(const Reply& reply, const HeaderList& more, const HttpRequest& request, bool keeps,
                      std::optional<std::size_t> length) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", reply.status, reason_phrase(reply.status), http_date());
  if (!reply.content_type.empty()) text += fmt::format("Content-Type: {}\r\n", reply.content_type);
  for (const HeaderList* const list : {&reply.headers, &more}) {
    for (const auto& [name, value] : *list) text += fmt::format("{}: {}\r\n", name, value);
  }
  if (length) {
    text += fmt::format("Content-Length: {}\r\n", *length);
  } else if (request.minor_version == 1) {
    text += "Transfer-Encoding: chunked\r\n";
  }
  if (!keeps) {
    text += "Connection: close\r\n";
  } else if (request.minor_version == 0) {
    text += "Connection: keep-alive\r\n";
  }
  return text + "\r\n";
}

}  // namespace

// ---- the bell

OutputWakeup::OutputWakeup() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw system_error(errno, "cannot make an event descriptor");
}

void OutputWakeup::ring() const {
  const std::uint64_t one = 1;
  const ssize_t ignored = ::write(event_.get(), &one, sizeof one);
  static_cast<void>(ignored);  // full: the thread is awake already
}

void OutputWakeup::ring(const std::shared_ptr<Connection>& connection) {
  {
    const std::lock_guard lock(mutex_);
    rung_.push_back(connection);
  }
  ring();
}

std::vector<std::shared_ptr<Connection>> OutputWakeup::take() {
  std::uint64_t count = 0;
  const ssize_t ignored = ::read(event_.get(), &count, sizeof count);
  static_cast<void>(ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(rung_, {});
}

// ---- the exchange

Exchange::Exchange(std::shared_ptr<Connection> connection, std::uint64_t number, HttpRequest request)
    : connection_(std::move(connection)), number_(number), request_(std::move(request)) {}

const std::string& Exchange::client_address() const { return connection_->address; }

// The connection may be at its next request already. Under its mutex.
bool Exchange::is_open() const {
  return connection_->exchange == number_ && !connection_->is_lost && !connection_->is_answered;
}

Exchange::~Exchange() {
  if (!is_over()) {
    end();  // of a stream
    respond(
        {.status = 500, .body = plain_error_json("the request was not answered: please report this", "server_error")});
  }
  if (!report_) return;
  report_(*this, {.status = status_,
                  .is_complete = is_complete_,
                  .seconds = to_seconds(real_clock().now() - came_).value,
                  .notes = notes_});
}

bool Exchange::is_over() const {
  const std::lock_guard lock(connection_->mutex);
  return !is_open();
}

void Exchange::add_header(std::string name, std::string value) {
  headers_.emplace_back(std::move(name), std::move(value));
}

void Exchange::respond(const Reply& reply) {
  std::unique_lock lock(connection_->mutex);
  Connection& c = *connection_;
  if (!is_open() || c.has_head) return;
  const bool keeps = request_.keep_alive && !c.wakeup->draining && !c.close_after;
  const bool has_no_body = reply.status == 204 || reply.status == 304;
  status_ = reply.status;
  is_complete_ = true;
  c.out += head_text(reply, headers_, request_, keeps, has_no_body ? std::nullopt : std::optional(reply.body.size()));
  if (request_.method != "HEAD" && !has_no_body) c.out += reply.body;
  c.close_after = !keeps;
  c.is_answered = true;
  c.on_leave = nullptr;
  const bool must_ring = !std::exchange(c.is_rung, true);
  lock.unlock();
  if (must_ring) c.wakeup->ring(connection_);
}

void Exchange::start_stream(const Reply& start) {
  std::unique_lock lock(connection_->mutex);
  Connection& c = *connection_;
  if (!is_open() || c.has_head) return;
  c.has_head = true;
  c.is_chunked = request_.minor_version == 1;
  c.is_head_only = request_.method == "HEAD";
  const bool keeps = c.is_chunked && request_.keep_alive && !c.wakeup->draining && !c.close_after;
  status_ = start.status;
  c.out += head_text(start, headers_, request_, keeps, std::nullopt);
  c.close_after = !keeps;
  const bool must_ring = !std::exchange(c.is_rung, true);
  lock.unlock();
  if (must_ring) c.wakeup->ring(connection_);
}

void Exchange::write(std::string_view piece) {
  if (piece.empty()) return;
  std::unique_lock lock(connection_->mutex);
  Connection& c = *connection_;
  if (!is_open() || !c.has_head || c.is_head_only) return;
  if (c.is_chunked) {
    fmt::format_to(std::back_inserter(c.out), "{:x}\r\n", piece.size());
    c.out += piece;
    c.out += "\r\n";
  } else {
    c.out += piece;
  }
  const bool must_ring = !std::exchange(c.is_rung, true);
  lock.unlock();
  if (must_ring) c.wakeup->ring(connection_);
}

void Exchange::end() {
  std::unique_lock lock(connection_->mutex);
  Connection& c = *connection_;
  if (!is_open() || !c.has_head) return;
  is_complete_ = true;
  if (c.is_chunked && !c.is_head_only) c.out += "0\r\n\r\n";
  c.is_answered = true;
  c.on_leave = nullptr;
  const bool must_ring = !std::exchange(c.is_rung, true);
  lock.unlock();
  if (must_ring) c.wakeup->ring(connection_);
}

void Exchange::on_leave(std::function<void()> call) {
  {
    const std::lock_guard lock(connection_->mutex);
    if (connection_->exchange != number_ || connection_->is_answered) return;
    if (!connection_->is_lost) {
      connection_->on_leave = std::move(call);
      return;
    }
  }
  call();
}

// ---- words

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::string plain_error_json(std::string_view message, std::string_view type) {
  const Document error = Document::map({{"message", Document::string(std::string(message))},
                                        {"type", Document::string(std::string(type))},
                                        {"param", Document::null()},
                                        {"code", Document::null()}});
  return print_json(Document::map({{"error", error}}), JsonLayout::kOneLine) + "\n";
}

}  // namespace yoke::http
