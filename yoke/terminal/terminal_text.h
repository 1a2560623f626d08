// Text as the terminal in front of the user shows it: lines no wider than the terminal, colour on findings and
// verdicts, and no character that its locale lacks. It is put on last, by how a line begins, so that no text of a
// command carries an escape, and so that pipes and files get the plain one.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace yoke::terminal {

struct TerminalKind {
  std::size_t columns = 80;
  bool colour = false;
  bool utf8 = true;
};

// The terminal behind a descriptor. Ask only where there is one.
TerminalKind terminal_kind(int fd);

// `text`: of our own, with no control characters but newlines. A line that is too wide is continued below, indented
// as far as its text; a line that is a command to paste stays whole.
std::string for_terminal(std::string_view text, const TerminalKind& terminal);

// Only the first of the three: for what goes to standard error.
std::string fold_lines(std::string_view text, std::size_t columns);

}  // namespace yoke::terminal
