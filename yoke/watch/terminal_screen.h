// The terminal in full: lines with their tones, keys, resizing, suspending. However the program ends, the terminal is
// as it was: also after SIGKILL, by a small process that waits for it. The one place that sees ncurses.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/watch/screen.h"

namespace yoke::watch {

class TerminalScreen {
 public:
  // Throws Error(kUnsupported) where the terminal cannot do it. Standard input and output must be a terminal.
  TerminalScreen();
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  ScreenSize size() const;
  void show(const std::vector<ScreenLine>& lines);
  std::optional<int> key(Seconds wait);  // nothing in this time

 private:
  void suspend();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yoke::watch
