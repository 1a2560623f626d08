// What `yoke serve` says while it runs: lines that a person can read on standard error, or with --json one object a
// line on standard output.
#pragma once
#include <string>

#include "yoke/http/server.h"
#include "yoke/terminal/session.h"

namespace yoke::serve {

class ServeLog {
 public:
  explicit ServeLog(const terminal::Session& session) : session_(session) {}

  void say(const char* event, const std::string& text) const;
  // One line for each request; not for what looks at the server every few seconds, unless it was refused.
  void report(const http::Exchange& exchange, const http::ExchangeReport& report) const;

 private:
  const terminal::Session& session_;
};

// "127.0.0.1 POST /v1/completions 200 in 0.42 s: 10 tokens in, 32 out, the first after 0.08 s (cmpl-…)".
std::string request_line(const std::string& client, const http::HttpRequest& request,
                         const http::ExchangeReport& report);

}  // namespace yoke::serve
