// Environment modules ("cuda/12.4"), as sites with many versions of a library have them. The lines load them in a
// script and end it where one is not there: 'module load' itself often returns 0.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::launch {

// Names apart by blanks or commas. Error(kUsage) for what is no module's name.
std::vector<std::string> parse_modules(std::string_view text);
// For bash, with 'set -u' or without; empty for no module.
std::string modules_text(const std::vector<std::string>& modules);
// Prints the modules that cannot be loaded, one a line, and exits with 1; 3: there are no modules at all.
std::string modules_check_text(const std::vector<std::string>& modules);

}  // namespace yoke::launch
