#include "yoke/terminal/line_editor.h"

#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <exception>

#include "yoke/base/error.h"
#include "yoke/base/terminal.h"
#include "yoke/base/text.h"

namespace yoke::terminal {
namespace {

constexpr int kIdleEveryMs = 50;
constexpr int kHistoryLines = 1000;
constexpr std::size_t kMaxPaste = 1 << 20;  // characters: more than any model's context takes

void write_terminal(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;  // the terminal has gone, as reading will tell
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// The terminal marks what is pasted, so that its line ends are not taken for the Enter key.
struct BracketedPaste {
  BracketedPaste() { write_terminal("\x1b[?2004h"); }
  ~BracketedPaste() { write_terminal("\x1b[?2004l"); }
};

}  // namespace

// libedit converts characters by the thread's locale. What models read is UTF-8, whatever the user's locale is.
class Utf8Locale {
 public:
  Utf8Locale() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_) before_ = uselocale(locale_);
  }
  ~Utf8Locale() {
    if (!locale_) return;
    uselocale(before_);
    freelocale(locale_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t locale_;
  locale_t before_ = nullptr;
};

struct LineEditor::State {
  LineEditorOptions options;
  Utf8Locale locale;  // before libedit asks for it
  EditLine* editor = nullptr;
  History* history = nullptr;
  std::string prompt;
  bool reading = false;
  bool interrupted = false;
  std::exception_ptr thrown;  // by a hook: nothing may pass through libedit
  std::size_t columns = 0;
  mbstate_t shift{};

  static State& of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<State*>(data);
  }

  // False: reading ends here.
  bool poll_once() {
    try {
      if (options.idle) options.idle();
      interrupted = options.interrupted && options.interrupted();
    } catch (...) {
      thrown = std::current_exception();
    }
    if (interrupted || thrown) return false;
    termios mode{};
    const std::size_t now = terminal_columns(STDOUT_FILENO).value_or(80);
    const bool cooked = tcgetattr(STDIN_FILENO, &mode) == 0 && (mode.c_lflag & ICANON) != 0;  // after Ctrl-Z and fg
    if (now == columns && !cooked) return true;
    columns = now;
    if (cooked) el_set(editor, EL_PREP_TERM, 1);
    el_resize(editor);
    el_set(editor, EL_REFRESH);
    return true;
  }

  // One character; 0: the end, -1: reading ends here.
  int get(wchar_t& character) {
    while (true) {
      if (!poll_once()) return -1;
      pollfd waiting{STDIN_FILENO, POLLIN, 0};
      if (poll(&waiting, 1, kIdleEveryMs) <= 0) continue;
      char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return 0;
      const std::size_t length = mbrtowc(&character, &byte, 1, &shift);
      if (length == static_cast<std::size_t>(-2)) continue;  // more bytes of it follow
      if (length != static_cast<std::size_t>(-1)) return 1;
      shift = {};
      character = L'\xFFFD';
      return 1;
    }
  }

  unsigned char paste() {
    constexpr std::wstring_view kEnd = L"\x1b[201~";
    std::wstring text;
    while (!text.ends_with(kEnd) && text.size() < kMaxPaste) {
      wchar_t character = 0;
      if (get(character) != 1) return CC_EOF;
      text += character == L'\r' ? L'\n' : character;
    }
    if (text.ends_with(kEnd)) text.resize(text.size() - kEnd.size());
    while (text.ends_with(L'\n')) text.pop_back();  // the Enter key sends it, not the paste
    std::erase_if(text, [](wchar_t c) { return (c < L' ' && c != L'\n' && c != L'\t') || c == 0x7f; });
    return insert(text);
  }

  unsigned char insert(const std::wstring& text) const {
    return text.empty() || el_winsertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  void remember(const std::string& line) const {
    if (trim(line).empty()) return;
    HistEvent event{};
    ::history(history, &event, H_ENTER, line.c_str());
    if (!options.history_file.empty()) ::history(history, &event, H_SAVE, options.history_file.c_str());
  }
};

namespace {

void bind_keys(EditLine* editor) {
  const std::pair<const char*, const char*> keys[] = {
      {"\\e[200~", "yoke-paste"},    {"\\e^M", "yoke-newline"},         {"\\e^J", "yoke-newline"},
      {"\\e[H", "ed-move-to-beg"},   {"\\e[F", "ed-move-to-end"},       {"\\e[1~", "ed-move-to-beg"},
      {"\\e[4~", "ed-move-to-end"},  {"\\e[3~", "ed-delete-next-char"}, {"\\e[1;5D", "ed-prev-word"},
      {"\\e[1;5C", "em-next-word"},  {"\\e[D", "ed-prev-char"},         {"\\e[C", "ed-next-char"},
      {"\\e[A", "ed-prev-history"},  {"\\e[B", "ed-next-history"},      {"^R", "em-inc-search-prev"},
      {"^W", "ed-delete-prev-word"}, {"^U", "vi-kill-line-prev"}};
  for (const auto& [key, command] : keys) el_set(editor, EL_BIND, key, command, nullptr);
}

}  // namespace

LineEditor::LineEditor(LineEditorOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->editor = el_init("yoke", stdin, stdout, stderr);
  if (!state_->editor) throw Error(ErrorCode::kUnsupported, "this terminal cannot be edited on", "use a pipe instead");
  EditLine* const editor = state_->editor;
  el_set(editor, EL_CLIENTDATA, state_.get());
  el_set(editor, EL_SIGNAL, 0);  // Ctrl-C is the owner's
  el_set(editor, EL_EDITOR, "emacs");
  el_set(
      editor, EL_PROMPT, +[](EditLine* self) { return State::of(self).prompt.data(); });
  el_wset(
      editor, EL_GETCFN, +[](EditLine* self, wchar_t* character) { return State::of(self).get(*character); });
  el_set(
      editor, EL_ADDFN, "yoke-paste", "insert what is pasted",
      +[](EditLine* self, int) { return State::of(self).paste(); });
  el_set(
      editor, EL_ADDFN, "yoke-newline", "begin another line of the same text",
      +[](EditLine* self, int) { return State::of(self).insert(L"\n"); });
  bind_keys(editor);
  state_->history = history_init();
  HistEvent event{};
  history(state_->history, &event, H_SETSIZE, kHistoryLines);
  history(state_->history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, history, state_->history);
  if (!state_->options.history_file.empty()) {
    history(state_->history, &event, H_LOAD, state_->options.history_file.c_str());  // the first time there is none
  }
}

LineEditor::~LineEditor() {
  history_end(state_->history);
  el_end(state_->editor);
}

TypedLine LineEditor::read(const std::string& prompt) {
  State& state = *state_;
  state.prompt = prompt;
  state.interrupted = false;
  state.thrown = nullptr;
  state.shift = {};
  state.columns = terminal_columns(STDOUT_FILENO).value_or(80);
  int count = 0;
  const char* line = nullptr;
  {
    const BracketedPaste paste;
    state.reading = true;
    el_set(state.editor, EL_PREP_TERM, 1);  // before the prompt is shown: libedit alone does it after
    line = el_gets(state.editor, &count);
    state.reading = false;
  }
  if (state.thrown) std::rethrow_exception(std::exchange(state.thrown, nullptr));
  if (state.interrupted) return {.kind = TypedLine::Kind::kInterrupt};
  if (!line || count <= 0) return {.kind = TypedLine::Kind::kEnd};
  std::string text(line);
  if (text.ends_with('\n')) text.pop_back();
  state.remember(text);
  return {.kind = TypedLine::Kind::kLine, .text = std::move(text)};
}

void LineEditor::print_above(std::string_view lines) {
  if (!state_->reading) return write_terminal(lines);
  const LineInfoW* info = el_wline(state_->editor);
  const std::size_t rows = cursor_row({info->buffer, static_cast<std::size_t>(info->cursor - info->buffer)},
                                      count_columns(state_->prompt), state_->columns);
  write_terminal((rows > 0 ? fmt::format("\x1b[{}A", rows) : "") + "\r\x1b[J");
  write_terminal(lines);
  el_set(state_->editor, EL_REFRESH);
}

std::size_t cursor_row(std::wstring_view text, std::size_t prompt_columns, std::size_t columns) {
  std::size_t row = 0, column = prompt_columns;
  for (const wchar_t character : text) {
    if (character == L'\n') {
      ++row;
      column = 0;
      continue;
    }
    const int width = character == L'\t' ? static_cast<int>(8 - column % 8) : wcwidth(character);
    const std::size_t taken = width > 0 ? static_cast<std::size_t>(width) : 0;
    if (column + taken > columns) {
      ++row;
      column = 0;
    }
    column += taken;
    if (column >= columns) {  // the cursor goes on below
      ++row;
      column = 0;
    }
  }
  return row;
}

}  // namespace yoke::terminal
