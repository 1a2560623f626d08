// One question to an HTTP server by a plain connection: for the health of an engine on this machine or on the link.
//
//   const HttpAnswer answer = ask({"127.0.0.1", 8000}, {.path = "/health"}, Deadline::after(2_s));
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/socket.h"
#include "yoke/http/http_answer.h"

namespace yoke::http {

struct HttpQuestion {
  std::string method = "GET";
  std::string path = "/";
  std::string body = {};  // JSON where it is not empty
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Throws Error(kUnavailable) where nobody listens or the connection breaks, kTimeout at the deadline, kInvalid for what
// is no HTTP.
HttpAnswer ask(const Endpoint& server, const HttpQuestion& question, Deadline deadline);

// The same with an answer that is read as it comes. One thread owns it; what goes wrong is thrown as by ask().
class AnswerStream {
 public:
  AnswerStream(const Endpoint& server, const HttpQuestion& question, Deadline deadline);

  // Status and headers, once they have come; until then nothing, after at most `wait`.
  const HttpAnswer* head(Seconds wait);
  // What has come of the body since; empty after at most `wait`.
  std::string read(Seconds wait);
  bool is_complete() const { return reader_.is_complete(); }

 private:
  bool receive(Seconds wait);

  const Endpoint server_;
  Socket socket_;
  AnswerReader reader_;
};

}  // namespace yoke::http
