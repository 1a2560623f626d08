// What a person types at the terminal, and texts that come through standard input.
#pragma once
#include <optional>
#include <string>

#include "yoke/base/units.h"

namespace yoke::terminal {

// Without its line end; nothing where the input ends before. Throws Error(kInterrupted) on Ctrl-C.
std::optional<std::string> read_typed_line();

// What is typed until the line ends, not shown. Throws Error(kUsage) where the input ends before, kInterrupted on
// Ctrl-C; the terminal is as it was in either case. The standard input must be a terminal.
std::string read_secret(const std::string& prompt);

// All of standard input, to its end. More than `most` of it is refused.
std::string read_standard_input(Bytes max);

}  // namespace yoke::terminal
