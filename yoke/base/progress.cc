#include "yoke/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "yoke/base/log.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

constexpr Seconds kSilence{2};
constexpr Seconds kTerminalEvery{0.2};
constexpr Seconds kLogEvery{10};
std::atomic<bool> quiet{false};

// The last column stays free: some terminals begin a new line as soon as it is written.
std::string cut_to(std::string text, std::size_t columns) {
  if (count_columns(text) < columns) return text;
  const std::size_t kept = columns > 4 ? columns - 4 : 0;
  std::size_t at = 0;
  for (std::size_t column = 0; at < text.size(); ++at) {
    const bool starts_character = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (starts_character && column++ == kept) break;
  }
  return text.substr(0, at) + "...";
}

}  // namespace

void set_quiet_progress() { quiet = true; }

ProgressOptions default_progress() {
  if (quiet) return {.style = ProgressStyle::kQuiet, .write = {}};
  if (takes_escapes(STDERR_FILENO)) {
    return {.style = ProgressStyle::kTerminal,
            .write =
                [](std::string_view text) {
                  if (write(STDERR_FILENO, text.data(), text.size()) < 0) { /* progress is never worth an error */
                  }
                },
            .columns = [] { return terminal_columns(STDERR_FILENO).value_or(80); }};
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
  const std::string text = terminal_safe(line(done, detail, elapsed));
  if (!terminal) return options_.write(text);
  options_.write("\r\x1b[K" + (options_.columns ? cut_to(text, options_.columns()) : text));
}

std::string Progress::line(std::int64_t done, std::string_view detail, Seconds elapsed) const {
  std::string text = what_;
  if (total_ > 0) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total_);
    text += fmt::format(": {:.0f}%", 100 * fraction);
    if (fraction > 0.01 && fraction < 1) {
      text += fmt::format(", {:.0f} s left", elapsed.value * (1 - fraction) / fraction);
    }
    text += fmt::format(", {:.0f} s so far", elapsed.value);
  } else {
    text += fmt::format(": {:.0f} s so far", elapsed.value);
  }
  if (!detail.empty()) text += fmt::format(" ({})", detail);
  return text;
}

}  // namespace yoke
