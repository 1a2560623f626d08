#include "yoke/serve/serve_log.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "yoke/base/clock.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/text.h"

namespace yoke::serve {
namespace {

std::string note_of(const http::ExchangeReport& report, std::string_view name) {
  for (const auto& [key, value] : report.notes) {
    if (key == name) return value;
  }
  return {};
}

bool is_a_look(const http::HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

// A log that nobody reads must not hold up the server: where it would, the line is left out.
void write_if_free(int fd, const std::string& line) {
  pollfd waited{.fd = fd, .events = POLLOUT, .revents = 0};
  if (poll(&waited, 1, 0) != 1 || (waited.revents & POLLOUT) == 0) return;
  const ssize_t ignored = write(fd, line.data(), line.size());
  static_cast<void>(ignored);  // nowhere left to say it
}

}  // namespace

void ServeLog::say(const char* event, const std::string& text) const {
  if (session_.json) {
    const Document line = Document::map({{"time", Document::string(utc_now())},
                                         {"event", Document::string(event)},
                                         {"message", Document::string(text)}});
    session_.print_as_is(print_json(line, JsonLayout::kOneLine) + "\n");
  } else if (!session_.quiet) {
    const std::string line = fmt::format("yoke: {}\n", terminal_safe(text));
    const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(ignored);  // nowhere left to say it
  }
}

void ServeLog::report(const http::Exchange& exchange, const http::ExchangeReport& report) const {
  const http::HttpRequest& request = exchange.request();
  // A server that is still loading answers with 503 to who asks whether it is ready.
  if (is_a_look(request) && (report.status < 400 || report.status == 503)) return;
  const std::string client = note_of(report, "client");
  const std::string who = client.empty() ? exchange.client_address() : exchange.client_address() + " " + client;
  if (!session_.json) {
    if (session_.quiet) return;
    return write_if_free(STDERR_FILENO, fmt::format("yoke: {}\n", terminal_safe(request_line(who, request, report))));
  }
  Document line = Document::map({{"time", Document::string(utc_now())},
                                 {"event", Document::string("request")},
                                 {"address", Document::string(exchange.client_address())},
                                 {"method", Document::string(printable(request.method, 20))},
                                 {"path", Document::string(printable(request.path, 200))},
                                 {"status", Document::number(std::int64_t{report.status})},
                                 {"complete", Document::boolean(report.is_complete)},
                                 {"seconds", Document::number(report.seconds)}});
  for (const auto& [name, value] : report.notes) {
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789.") == std::string::npos;
    line.add(name, is_number ? Document{.kind = Document::Kind::kNumber, .text = value}
                             : Document::string(printable(value, 300)));
  }
  write_if_free(STDOUT_FILENO, print_json(line, JsonLayout::kOneLine) + "\n");
}

std::string request_line(const std::string& client, const http::HttpRequest& request,
                         const http::ExchangeReport& report) {
  std::string line = fmt::format("{} {} {} ", client, printable(request.method, 20), printable(request.path, 200));
  line += report.status == 0 ? "no answer" : std::to_string(report.status);
  line += fmt::format(" in {}", to_string(Seconds{report.seconds}));
  if (!report.is_complete) line += ", the client left";
  if (const std::string error = note_of(report, "error"); !error.empty()) line += ", " + printable(error, 200);
  const std::string prompt = note_of(report, "prompt_tokens"), answer = note_of(report, "answer_tokens");
  if (!prompt.empty()) {
    line += fmt::format(": {} tokens in", prompt);
    if (const std::string cached = note_of(report, "cached_tokens"); !cached.empty()) {
      line += fmt::format(" ({} cached)", cached);
    }
    line += fmt::format(", {} out", answer);
  }
  if (const std::string first = note_of(report, "first_token_s"); !first.empty()) {
    line += fmt::format(", the first after {} s", first);
  }
  if (const std::string id = note_of(report, "id"); !id.empty()) line += fmt::format(" ({})", id);
  return line;
}

}  // namespace yoke::serve
