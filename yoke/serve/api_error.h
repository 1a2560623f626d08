// What is wrong with a request to the server, in the shape of OpenAI's API, with the status of HTTP.
#pragma once
#include <optional>
#include <string>

#include "yoke/base/document.h"
#include "yoke/base/error.h"

namespace yoke::serve {

enum class ApiKind { kChat, kCompletion, kResponses, kMessages };

class ApiError : public Error {
 public:
  ApiError(int status, std::string message, std::optional<std::string> param = {},
           std::optional<std::string> code = {});
  // Any other error of ours, as a client is to see it.
  static ApiError of(const Error& error);

  int status() const { return status_; }
  Document json() const;                 // {"error": {"message", "type", "param", "code"}}
  Document json_of(ApiKind kind) const;  // the same, or in Anthropic's shape
  std::string text() const;

 private:
  int status_;
  std::optional<std::string> param_, code_;
};

// Reads what a client sent. What costs too much to read is a mistake of the request, as a size above a limit is: with
// status 429 a client would send it again.
template <class Read>
auto read_of_client(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const ApiError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kExhausted) throw;
    throw ApiError(400, error.message());
  }
}

}  // namespace yoke::serve
