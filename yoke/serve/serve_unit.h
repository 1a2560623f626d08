// The unit of systemd that `yoke serve --unit` prints: the command as it was typed, less --unit.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::serve {

struct ServeUnit {
  std::string program;                 // absolute
  std::vector<std::string> arguments;  // all that were given
  std::string folder;                  // where relative paths are meant from
  std::string user;
  std::map<std::string, std::string> environment;  // what changes where models are found
  Seconds drain_limit;
};

// The name of the model, or of what is served, for a person.
std::string serve_unit_text(const ServeUnit& unit, const std::string& title);
// A word of a command line as systemd reads it back.
std::string systemd_word(const std::string& word);
// What this process was started with, but for its own name.
std::vector<std::string> own_arguments();

}  // namespace yoke::serve
