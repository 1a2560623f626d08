// Progress for anything over two seconds. On a terminal one live line, redrawn a few times a second, never wider than
// the terminal, and gone at the end; elsewhere, and on a dumb terminal, a log line every ten seconds. Nothing at all
// for work that ends sooner, or with ProgressStyle::kQuiet.
//
//   Progress progress("loading", total);         // or a Progress& from above
//   for (...) progress.update(done, "layer 12"); // cheap: call it as often as you like, from one thread
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "yoke/base/clock.h"

namespace yoke {

enum class ProgressStyle { kTerminal, kLog, kQuiet };

struct ProgressOptions {
  ProgressStyle style;
  std::function<void(std::string_view)> write;  // terminal: raw text with \r; log: one line without its end
  const Clock* clock = &real_clock();
  std::function<std::size_t()> columns = {};  // of the terminal, asked each time it is drawn; empty: no limit
};

// For this process: kTerminal when standard error is a terminal that takes escapes, else kLog. Set once by the command
// line.
ProgressOptions default_progress();
void set_quiet_progress();

class Progress {
 public:
  // `total` of 0: unknown, only the time and the detail are shown.
  Progress(std::string what, std::int64_t total, ProgressOptions options = default_progress());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done, std::string_view detail = {});

 private:
  std::string line(std::int64_t done, std::string_view detail, Seconds elapsed) const;

  std::string what_;
  std::int64_t total_;
  ProgressOptions options_;
  Instant start_;
  Instant shown_{};
  bool drawn_ = false;
};

}  // namespace yoke
