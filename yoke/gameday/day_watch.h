// A watch beside a game day: begun once the nodes are known, ended before the clean-up. Its record becomes a strip of
// plots in the report. A watch that fails costs the day nothing but the strip.
#pragma once
#include <optional>
#include <vector>

#include "yoke/base/process.h"
#include "yoke/gameday/environment.h"
#include "yoke/report/html.h"

namespace yoke::gameday {

class DayWatch {
 public:
  DayWatch() = default;
  DayWatch(const DayWatch&) = delete;
  DayWatch& operator=(const DayWatch&) = delete;
  ~DayWatch();

  // Where there is a cluster file by now, and it was not begun.
  void begin(const Environment& environment) noexcept;
  // What it recorded; nothing where that is too little to show.
  std::vector<report::HtmlBlock> end(const Environment& environment) noexcept;

 private:
  std::optional<Process> process_;
};

}  // namespace yoke::gameday
