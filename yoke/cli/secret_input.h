// A secret from the person at the terminal.
#pragma once
#include <string>

namespace yoke {

// What is typed until the line ends, not shown. Throws Error(kUsage) where the input ends before, kInterrupted on
// Ctrl-C; the terminal is as it was in either case. The standard input must be a terminal.
std::string read_secret(const std::string& prompt);

}  // namespace yoke
