// A line that the user edits at a terminal: cursor keys, words, history (up, down, Ctrl-R), several lines (Alt-Enter,
// or pasted), over libedit. While a line is typed it calls back, so that the owner can look after what goes on beside,
// and text can be printed above the line, which then stands below it again as it was.
//
//   LineEditor editor({.history_file = file, .idle = [&] { … }, .interrupted = [&] { return …; }});
//   const TypedLine typed = editor.read("> ");
//
// One thread owns it. Needs a terminal that takes escapes as standard input and output.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace yoke::terminal {

struct TypedLine {
  enum class Kind { kLine, kInterrupt, kEnd } kind = Kind::kEnd;
  std::string text = {};  // without the line end; it may hold others
};

struct LineEditorOptions {
  std::filesystem::path history_file = {};  // read at the start and written after each line; empty: not kept
  std::function<void()> idle = {};          // about 20 times a second; what it throws comes out of read()
  std::function<bool()> interrupted = {};   // asked as often: true ends read() with kInterrupt
};

class LineEditor {
 public:
  explicit LineEditor(LineEditorOptions options);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  TypedLine read(const std::string& prompt);
  // Whole lines, above the one that is being typed.
  void print_above(std::string_view lines);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How many rows below its first the cursor stands, behind this text and a prompt of so many columns.
std::size_t cursor_row(std::wstring_view text, std::size_t prompt_columns, std::size_t columns);

}  // namespace yoke::terminal
