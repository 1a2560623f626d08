#include "yoke/watch/terminal_screen.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <clocale>
#include <cstdlib>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/base/fork_call.h"
#include "yoke/base/result.h"
#include "yoke/base/terminal.h"
// Its macros come last.
#include <curses.h>

namespace yoke::watch {
namespace {

// Waits in a process of its own until the program has gone, and restores the terminal where that did not do it itself.
class TerminalGuard {
 public:
  TerminalGuard() {
    int ends[2] = {-1, -1};
    if (tcgetattr(STDIN_FILENO, &before_) != 0 || pipe2(ends, O_CLOEXEC) != 0) return;
    const UniqueFd reading(ends[0]);
    writing_ = UniqueFd(ends[1]);
    // Without it all works as well.
    if (const auto child = try_to([&] { return fork_call([&] { return restore_after_end(reading.get()); }); })) {
      child_ = *child;
    }
  }
  TerminalGuard(const TerminalGuard&) = delete;
  TerminalGuard& operator=(const TerminalGuard&) = delete;
  // All is as it was.
  ~TerminalGuard() {
    if (child_ <= 0) return;
    const ssize_t ignored = write(writing_.get(), "x", 1);
    static_cast<void>(ignored);
    waitpid(child_, nullptr, 0);
  }

 private:
  // Only what a signal handler may call: other threads run.
  int restore_after_end(int reading) const {
    const int terminal = STDOUT_FILENO;
    dup2(reading, STDIN_FILENO);
    syscall(SYS_close_range, 3U, ~0U, 0U);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGTTOU, SIGTSTP, SIGQUIT}) signal(number, SIG_IGN);
    char byte = 0;
    if (read(STDIN_FILENO, &byte, 1) == 1) return 0;
    constexpr char kRestore[] = "\033[?1049l\033[?25h\033[0m\033[?1l\033>\r\n";
    const ssize_t ignored = write(terminal, kRestore, sizeof kRestore - 1);
    static_cast<void>(ignored);
    tcsetattr(terminal, TCSANOW, &before_);
    return 0;
  }

  termios before_{};
  UniqueFd writing_;
  pid_t child_ = -1;
};

// Set by Ctrl-Z. Curses' own handler restores the terminal in whatever thread the signal finds, also while another
// thread draws, and then the two mix; here the thread that draws does it.
std::atomic<bool> is_stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

enum ColourPair : short { kPairGood = 1, kPairWarning, kPairBad, kPairTitle };

int attributes_of(ScreenTone tone, bool colours) {
  switch (tone) {
    case ScreenTone::kPlain:
      return 0;
    case ScreenTone::kTitle:
      return static_cast<int>(A_BOLD | (colours ? COLOR_PAIR(kPairTitle) : 0U));
    case ScreenTone::kGood:
      return static_cast<int>(colours ? COLOR_PAIR(kPairGood) : 0U);
    case ScreenTone::kWarning:
      return static_cast<int>(A_BOLD | (colours ? COLOR_PAIR(kPairWarning) : 0U));
    case ScreenTone::kBad:
      return static_cast<int>(A_BOLD | (colours ? COLOR_PAIR(kPairBad) : A_STANDOUT));
    case ScreenTone::kDim:
      return static_cast<int>(A_DIM);
    case ScreenTone::kMarked:
      return static_cast<int>(A_REVERSE);
  }
  return 0;
}

bool set_terminal_locale() {
  if (!locale_is_utf8()) return false;
  return std::setlocale(LC_CTYPE, "") && std::string_view(std::setlocale(LC_CTYPE, nullptr)) != "C"
             ? true
             : std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
}

}  // namespace

struct TerminalScreen::State {
  TerminalGuard guard;
  SCREEN* screen = nullptr;
  struct sigaction stop_before {};
  bool utf8 = false, colours = false;
};

TerminalScreen::TerminalScreen() : state_(std::make_unique<State>()) {
  state_->utf8 = set_terminal_locale();
  // Curses leaves a handler alone that is there before it.
  struct sigaction stop {};
  stop.sa_handler = [](int) { is_stop_asked = true; };
  if (sigaction(SIGTSTP, nullptr, &state_->stop_before) == 0 && state_->stop_before.sa_handler == SIG_DFL) {
    sigaction(SIGTSTP, &stop, nullptr);
  }
  state_->screen = newterm(nullptr, stdout, stdin);
  if (!state_->screen) {
    throw Error(ErrorCode::kUnsupported, "this terminal cannot show a screen",
                "set TERM, or print tables: yoke watch --once");
  }
  set_term(state_->screen);
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  state_->colours = takes_colour(STDOUT_FILENO) && has_colors() && start_color() == OK;
  if (state_->colours) {
    use_default_colors();
    init_pair(kPairGood, COLOR_GREEN, -1);
    init_pair(kPairWarning, COLOR_YELLOW, -1);
    init_pair(kPairBad, COLOR_RED, -1);
    init_pair(kPairTitle, COLOR_CYAN, -1);
  }
}

TerminalScreen::~TerminalScreen() {
  if (!state_->screen) return;
  endwin();
  delscreen(state_->screen);
  sigaction(SIGTSTP, &state_->stop_before, nullptr);
}

void TerminalScreen::suspend() {
  endwin();
  struct sigaction usual {};
  struct sigaction ours {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &usual, &ours);
  raise(SIGTSTP);  // returns when the shell continues this program
  sigaction(SIGTSTP, &ours, nullptr);
  clearok(stdscr, TRUE);
  refresh();
}

ScreenSize TerminalScreen::size() const {
  return {.width = static_cast<std::size_t>(std::max(1, getmaxx(stdscr))),
          .height = static_cast<std::size_t>(std::max(1, getmaxy(stdscr))),
          .utf8 = state_->utf8};
}

void TerminalScreen::show(const std::vector<ScreenLine>& lines) {
  erase();
  for (int row = 0; row < static_cast<int>(lines.size()); ++row) {
    const ScreenLine& line = lines[static_cast<std::size_t>(row)];
    const auto attributes = static_cast<attr_t>(attributes_of(line.tone, state_->colours));
    attron(attributes);
    mvaddstr(row, 0, line.text.c_str());
    attroff(attributes);
  }
  refresh();
}

std::optional<int> TerminalScreen::key(Seconds wait) {
  if (is_stop_asked.exchange(false)) suspend();
  timeout(static_cast<int>(wait.value * 1000));
  const int pressed = getch();
  switch (pressed) {
    case ERR:
      return std::nullopt;
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_RESIZE:
      return kKeyResize;
    default:
      return pressed;
  }
}

}  // namespace yoke::watch
