// A Python environment for an engine on every node, from one pinned list: made where it is missing, and compared.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::launch {

struct PythonOptions {
  std::string requirements;        // the text of a requirements file
  std::string folder;              // of the environment, on every node
  std::string wheels;              // a folder of packages on every node, instead of the internet; empty: the internet
  std::string python = "python3";  // that makes it
  bool check_only = false;
};

// Lines that do not name exactly one version: two nodes could get different ones. Pure, as is what follows.
std::vector<std::string> unpinned_lines(std::string_view requirements);
// For bash. Prints 'pip freeze', sorted; exits with 4 where only a look was asked for and there is no environment.
std::string python_script(const PythonOptions& options);
// What differs between two answers of 'pip freeze': "torch==2.9.1 here, torch==2.9.0 there".
std::vector<std::string> freeze_differences(std::string_view here, std::string_view there);

}  // namespace yoke::launch
