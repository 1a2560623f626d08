#include "yoke/serve/api_error.h"

#include <fmt/format.h>

#include "yoke/base/json.h"

namespace yoke::serve {
namespace {

ErrorCode code_of_status(int status) {
  if (status == 429) return ErrorCode::kExhausted;
  if (status == 503) return ErrorCode::kUnavailable;
  if (status == 504) return ErrorCode::kTimeout;
  return status >= 500 ? ErrorCode::kInternal : ErrorCode::kInvalid;
}

// As OpenAI's own API names them.
std::string type_of_status(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

// `code` of OpenAI's errors.
std::optional<std::string> name_of_code(ErrorCode code) {
  if (code == ErrorCode::kExhausted) return "queue_full";
  if (code == ErrorCode::kUnavailable) return "engine_unavailable";
  if (code == ErrorCode::kTimeout) return "timeout";
  return std::nullopt;
}

Document text_or_null(const std::optional<std::string>& text) {
  return text ? Document::string(*text) : Document::null();
}

}  // namespace

ApiError::ApiError(int status, std::string message, std::optional<std::string> param, std::optional<std::string> code)
    : Error(code_of_status(status), std::move(message)),
      status_(status),
      param_(std::move(param)),
      code_(std::move(code)) {}

ApiError ApiError::of(const Error& error) {
  const std::string message =
      error.hint().empty() ? error.message() : fmt::format("{} ({})", error.message(), error.hint());
  return ApiError(info(error.code()).http_status, message, {}, name_of_code(error.code()));
}

Document ApiError::json() const {
  return Document::map({{"error", Document::map({{"message", Document::string(message())},
                                                 {"type", Document::string(type_of_status(status_))},
                                                 {"param", text_or_null(param_)},
                                                 {"code", text_or_null(code_)}})}});
}

Document ApiError::json_of(ApiKind kind) const {
  if (kind != ApiKind::kMessages) return json();
  const char* const type = status_ == 404   ? "not_found_error"
                           : status_ == 413 ? "request_too_large"
                           : status_ == 503 ? "overloaded_error"
                           : status_ == 504 ? "timeout_error"
                           : status_ >= 500 ? "api_error"
                                            : nullptr;
  return Document::map({{"type", Document::string("error")},
                        {"error", Document::map({{"type", Document::string(type ? type : type_of_status(status_))},
                                                 {"message", Document::string(message())}})}});
}

std::string ApiError::text() const { return print_json(json(), JsonLayout::kOneLine); }

}  // namespace yoke::serve
