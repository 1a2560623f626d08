#include "yoke/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "yoke/base/log.h"

namespace yoke {
namespace {

constexpr Seconds kSilence{2};
constexpr Seconds kTerminalEvery{0.2};
constexpr Seconds kLogEvery{10};
std::atomic<bool> quiet{false};

}  // namespace

void set_quiet_progress() { quiet = true; }

ProgressOptions default_progress() {
  if (quiet) return {.style = ProgressStyle::kQuiet, .write = {}};
  if (isatty(STDERR_FILENO)) {
    return {.style = ProgressStyle::kTerminal, .write = [](std::string_view text) {
              if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* progress is never worth an error */
              }
            }};
  }
  return {.style = ProgressStyle::kLog, .write = [](std::string_view text) { log_line(LogLevel::kInfo, text); }};
}

Progress::Progress(std::string what, std::int64_t total, ProgressOptions options)
    : what_(std::move(what)),
      total_(total),
      options_(std::move(options)),
      start_(options_.clock->now()),
      shown_(start_) {}

Progress::~Progress() {
  if (drawn_ && options_.style == ProgressStyle::kTerminal) options_.write("\r\x1b[K");
}

void Progress::update(std::int64_t done, std::string_view detail) {
  if (options_.style == ProgressStyle::kQuiet) return;
  const Instant now = options_.clock->now();
  const Seconds elapsed = to_seconds(now - start_);
  const bool terminal = options_.style == ProgressStyle::kTerminal;
  const Seconds since_shown = to_seconds(now - shown_);
  if (elapsed < kSilence || since_shown < (terminal ? kTerminalEvery : kLogEvery)) return;
  shown_ = now;
  drawn_ = true;
  const std::string text = line(done, detail, elapsed);
  options_.write(terminal ? "\r\x1b[K" + text : text);
}

std::string Progress::line(std::int64_t done, std::string_view detail, Seconds elapsed) const {
  std::string text = what_;
  if (total_ > 0) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total_);
    text += fmt::format(": {:.0f}%", 100 * fraction);
    if (fraction > 0.01 && fraction < 1) {
      text += fmt::format(", {:.0f} s left", elapsed.value * (1 - fraction) / fraction);
    }
  } else {
    text += fmt::format(": {} done", done);
  }
  text += fmt::format(", {:.0f} s so far", elapsed.value);
  if (!detail.empty()) text += fmt::format(" ({})", detail);
  return text;
}

}  // namespace yoke
