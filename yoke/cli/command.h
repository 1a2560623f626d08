// One row of the table of commands (commands.cc). A command's file holds parse, call, print; the work is in the folders
// below.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/error.h"
#include "yoke/cli/options.h"
#include "yoke/terminal/session.h"

namespace yoke::cli {

using terminal::ClosedPipe;
using terminal::error_json;
using terminal::exit_status_of;
using terminal::Session;

using Action = std::function<int(Session&)>;  // the exit status; errors are thrown

struct Example {
  std::string line;
  std::string says;
};

// Where a command does its work. What concerns a cluster is done on its head node: see lab_head.h.
enum class CommandPlace { kHere, kHead };

// A hidden word is a part of the program that yoke itself starts, on a node or as a rank: no person types it, and no
// list shows it.
enum class Visibility { kPublic, kHidden };

struct CommandRow {
  std::string name;
  std::string summary;      // one line, no full stop
  std::string description;  // paragraphs for --help and the man page
  std::vector<Example> examples;
  std::function<Action(OptionTable&)> prepare;  // declares the options and returns what runs; empty for a mere group
  std::vector<CommandRow> subcommands = {};
  CommandPlace place = CommandPlace::kHere;
  std::vector<std::string> aliases = {};  // other names that are taken, but not listed
  Visibility visibility = Visibility::kPublic;
  // Of a hidden word, in place of `prepare`: gets all arguments as they are and returns the exit status, or nothing
  // where they are not what yoke gives it.
  std::function<std::optional<int>(const std::vector<std::string>& arguments)> part = {};
};

}  // namespace yoke::cli
