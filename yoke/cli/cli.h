// From the command line to an exit status: finds the command in the table, parses its options, runs it, and reports
// whatever it throws, once.
#pragma once
#include <string>
#include <vector>

namespace yoke {

int run_command_line(const std::vector<std::string>& arguments);  // without the program's name

}  // namespace yoke
