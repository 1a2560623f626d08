#include "yoke/terminal/session.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "yoke/base/files.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/json.h"
#include "yoke/base/log.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"
#include "yoke/terminal/terminal_text.h"

namespace yoke::terminal {

int exit_status_of(const Error& error) {
  if (error.code() != ErrorCode::kInterrupted) return error.exit_status();
  // An engine's owner takes the signal for itself (job::DeferredSignals), and then it is not among ours.
  return 128 + (interrupt_signal() != 0 ? interrupt_signal() : SIGINT);
}

Document error_json(const Error& error, int exit_status) {
  Document context = Document::list();
  for (const std::string& where : error.context()) context.items.push_back(Document::string(where));
  return Document::map({{"code", Document::string(std::string(info(error.code()).name))},
                        {"message", Document::string(error.message())},
                        {"hint", Document::string(error.hint())},
                        {"context", std::move(context)},
                        {"exit_status", Document::number(std::int64_t{exit_status})}});
}

std::vector<std::string> Session::given_options() const {
  if (const char* outside = std::getenv(kGivenVariable)) {
    const std::string text = outside;
    const std::size_t blank = text.find(' ');
    if (blank == text.npos) return {};
    return {text.substr(0, blank), text.substr(blank + 1)};
  }
  if (lab) return {"--lab", *lab};
  if (cluster_file) return {"--cluster", *cluster_file};
  return {};
}

std::optional<std::filesystem::path> Session::find_cluster_file() const {
  const std::filesystem::path file = cluster_file.value_or("cluster.yaml");
  std::error_code failure;
  if (std::filesystem::exists(file, failure)) return file;
  if (!cluster_file) return std::nullopt;
  throw Error(ErrorCode::kNotFound, fmt::format("there is no cluster file '{}'", printable(file.native(), 300)),
              "check the path after --cluster");
}

void Session::print(std::string_view text) const {
  const std::string safe = terminal_safe(text);
  print_as_is(isatty(STDOUT_FILENO) != 0 ? for_terminal(safe, terminal_kind(STDOUT_FILENO)) : safe);
}

void Session::print_as_is(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EPIPE) {
      throw ClosedPipe{};
    } else if (errno != EINTR) {
      throw system_error(errno, "cannot write to standard output",
                         errno == ENOSPC  ? "the disk is full"
                         : errno == EBADF ? "it is closed"
                                          : "");
    }
  }
}

void Session::print_json(const Document& document) const { print_as_is(yoke::print_json(document) + "\n"); }

void Session::warn(const std::vector<std::string>& warnings) const {
  constexpr std::size_t kLogPrefix = 17;  // "12:34:56 warning "
  const auto columns = terminal_columns(STDERR_FILENO);
  for (const std::string& warning : warnings) {
    log(LogLevel::kWarning, "{}", columns ? fold_lines(warning, *columns - kLogPrefix) : warning);
  }
}

void Session::note(std::string_view text) {
  std::string line = fmt::format("yoke: {}\n", terminal_safe(text));
  if (const auto columns = terminal_columns(STDERR_FILENO)) line = fold_lines(line, *columns);
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t count = write(STDERR_FILENO, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nowhere left to say it
    left.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace yoke::terminal
