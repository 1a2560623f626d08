// A program that talks with the user itself: it has this terminal, and Ctrl-C is its own.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace yoke {

// In this folder. Returns its exit status. SIGTERM and SIGHUP are passed on to it, and then end us with
// Error(kInterrupted).
int run_in_terminal(const std::vector<std::string>& argv, const std::filesystem::path& folder);

}  // namespace yoke
