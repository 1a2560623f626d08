#include "yoke/base/error.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "yoke/base/check.h"

namespace yoke {
namespace {

// HTTP: 400 where the request is at fault, 429, 503 and 504 where it may be sent again. A file or a right that the
// server lacks is no fault of the request: 500.
// Statuses 0, 1 and 3 belong to answers (error.h); `yoke check` turns every error into 2, "could not look".
constexpr std::array kCodes = {
    ErrorCodeInfo{ErrorCode::kUsage, "usage", 2, 400, "the command line makes no sense"},
    ErrorCodeInfo{ErrorCode::kInvalid, "invalid", 4, 400, "an input is not what it must be"},
    ErrorCodeInfo{ErrorCode::kNotFound, "not-found", 5, 500, "a file, program, node or name is not there"},
    ErrorCodeInfo{ErrorCode::kPermission, "permission", 6, 500, "the system does not allow it"},
    ErrorCodeInfo{ErrorCode::kUnavailable, "unavailable", 7, 503, "a host, peer or service cannot be reached"},
    ErrorCodeInfo{ErrorCode::kTimeout, "timeout", 8, 504, "a deadline passed"},
    ErrorCodeInfo{ErrorCode::kExhausted, "exhausted", 9, 429, "memory, disk or another resource is used up"},
    ErrorCodeInfo{ErrorCode::kConflict, "conflict", 10, 500, "it exists already, or is in use"},
    ErrorCodeInfo{ErrorCode::kUnsupported, "unsupported", 11, 400, "this machine, kernel or build cannot do it"},
    ErrorCodeInfo{ErrorCode::kInternal, "internal", 70, 500, "a bug in yoke"},
    ErrorCodeInfo{ErrorCode::kInterrupted, "interrupted", 130, 500, "stopped by Ctrl-C or a signal"},
};

ErrorCode code_for(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermission;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EDQUOT:
    case ENOBUFS:
      return ErrorCode::kExhausted;
    case EEXIST:
    case EBUSY:
    case EADDRINUSE:
    case ENOTEMPTY:
    case ETXTBSY:
      return ErrorCode::kConflict;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
      return ErrorCode::kUnsupported;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
    case ENETDOWN:
    case EHOSTDOWN:
    case ENOTCONN:
    case EADDRNOTAVAIL:
    case EBADF:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInvalid;
  }
}

}  // namespace

std::span<const ErrorCodeInfo> error_codes() { return kCodes; }

const ErrorCodeInfo& info(ErrorCode code) {
  for (const ErrorCodeInfo& row : kCodes) {
    if (row.code == code) return row;
  }
  YOKE_CHECK(false, "error code {} has no row", static_cast<int>(code));
  std::abort();
}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : code_(code), message_(std::move(message)), hint_(std::move(hint)) {}

Error Error::in(std::string where) && {
  context_.push_back(std::move(where));
  return std::move(*this);
}

Error system_error(int error_number, std::string_view what, std::string hint) {
  return Error(code_for(error_number), fmt::format("{}: {}", what, std::generic_category().message(error_number)),
               std::move(hint));
}

}  // namespace yoke
