// The live screen as lines of text: what is shown, without a terminal. terminal_screen.h puts it on one.
//
//   ScreenState state;
//   for (const ScreenLine& line : render_screen(board, state, {.width = 80, .height = 24})) …
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "yoke/watch/board.h"

namespace yoke::watch {

enum class ScreenView { kNodes, kRails, kGpus, kProcesses, kFindings, kHelp };

struct ScreenState {
  ScreenView view = ScreenView::kNodes;
  bool paused = false;
  std::size_t selected = 0;  // node
  std::size_t scroll = 0;    // lines of a table that are above the screen
  std::size_t zoom = 0;      // of the time axis: kZoomSeconds
  std::size_t sort = 0;      // column of the table
};
inline constexpr std::size_t kZoomSeconds[] = {1, 5, 15, 60};  // a character of a plot is so long

// Keys as they come from a terminal; arrows and the like by these.
enum ScreenKey : int { kKeyUp = 1001, kKeyDown, kKeyPageUp, kKeyPageDown, kKeyResize };

enum class KeyResult { kShown, kQuit };
KeyResult take_key(ScreenState& state, int key, std::size_t nodes);

enum class ScreenTone { kPlain, kTitle, kGood, kWarning, kBad, kDim, kMarked };
struct ScreenLine {
  std::string text;
  ScreenTone tone = ScreenTone::kPlain;
};
struct ScreenSize {
  std::size_t width = 80, height = 24;
  bool utf8 = true;
};
// Exactly `height` lines, none wider than `width`.
std::vector<ScreenLine> render_screen(const Board& board, const ScreenState& state, const ScreenSize& size);

}  // namespace yoke::watch
