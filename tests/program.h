// The built program as tests run it: arguments in, exit status and output out.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/base/process.h"

namespace yoke::tests {

inline const std::filesystem::path kSourceFolder = YOKE_SOURCE_DIR;

inline std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline Outcome run_yoke(std::vector<std::string> arguments, Command command = {}) {
  arguments.insert(arguments.begin(), YOKE_PROGRAM);
  command.argv = std::move(arguments);
  return run(command);
}

}  // namespace yoke::tests
