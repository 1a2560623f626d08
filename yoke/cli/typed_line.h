// A line that the person at the terminal types.
#pragma once
#include <optional>
#include <string>

namespace yoke {

// Without its line end; nothing where the input ends before. Throws Error(kInterrupted) on Ctrl-C.
std::optional<std::string> read_typed_line();

}  // namespace yoke
