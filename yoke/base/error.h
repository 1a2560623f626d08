// The one error type. It ends a unit of work (a command, a request, a rank) and is caught once at its top.
//
//   throw Error(ErrorCode::kNotFound, "there is no cluster file 'desk.yaml'", "write one, or name it with --cluster");
//   catch (Error& e) { throw std::move(e).in("reading the plan"); }
//
// The message says what failed, the hint what to do about it. Bugs are not Errors: see check.h. An absence to branch
// on is an optional or a Result: see result.h. Advice about a machine is a Finding: see yoke/spec/finding.h.
#pragma once
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

enum class ErrorCode {
  kUsage,        // the command line makes no sense
  kInvalid,      // an input (file, message, model) is not what it must be
  kNotFound,     // a file, program, node or name is not there
  kPermission,   // the system does not let us
  kUnavailable,  // a host, peer or service cannot be reached, or is lost
  kTimeout,      // a deadline passed
  kExhausted,    // memory, disk or another resource is used up
  kConflict,     // it exists already, or is in use
  kUnsupported,  // this machine, kernel or build cannot do it
  kInterrupted,  // the user stopped it
  kInternal,     // a bug that was caught
};

// One row per code: the only place where codes meet exit and HTTP statuses. docs/errors.md prints this table.
struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view name;  // as in JSON
  int exit_status;
  int http_status;
  std::string_view meaning;
};
std::span<const ErrorCodeInfo> error_codes();
const ErrorCodeInfo& info(ErrorCode code);

// Exit statuses that are not errors.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;      // the work was done, and the answer is no: findings, a disagreement
inline constexpr int kExitUnmeasured = 3;    // the work was done, but what had to be measured was not
inline constexpr int kExitClosedPipe = 141;  // the reader of our output went away, as with `yoke … | head -1`

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, std::string hint = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  const std::vector<std::string>& context() const { return context_; }  // innermost first
  int exit_status() const { return info(code_).exit_status; }
  const char* what() const noexcept override { return message_.c_str(); }

  // Says where it happened, from the inside out: "on spark-2", "loading the model".
  Error in(std::string where) &&;

 private:
  ErrorCode code_;
  std::string message_;
  std::string hint_;
  std::vector<std::string> context_;
};

// From a failed system call: "cannot open /etc/x: Permission denied", with the code that fits the errno.
Error system_error(int error_number, std::string_view what, std::string hint = {});

}  // namespace yoke
