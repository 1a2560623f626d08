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

namespace yoke::spec {
struct Cluster;
}
namespace yoke::cli {

// What every command is given: the options that all share, and the way out.

struct Session {
  bool json = false;
  bool quiet = false;
  bool verbose = false;   // -v
  bool protocol = false;  // -vv
  std::optional<std::string> cluster_file;
  std::optional<std::string> lab;
  mutable std::shared_ptr<const spec::Cluster> cluster_read = {};  // cluster_file.h reads it once

  // To standard output; an Error where that fails. What would steer a terminal is shown as an escape, no matter who
  // wrote it.
  void print(std::string_view text) const;
  void print_as_is(std::string_view text) const;    // for what a model or a rank writes
  void print_json(const Document& document) const;  // indented, with its line end
  void warn(const std::vector<std::string>& warnings) const;
  // "yoke: text" on standard error, no wider than the terminal there.
  static void note(std::string_view text);
};

// Nobody reads our output any more: the end, without a word, as for any program in a pipe.
struct ClosedPipe {};

// What stands under "error" in a command's JSON (docs/errors.md).
Document error_json(const Error& error, int exit_status);
int exit_status_of(const Error& error);  // 128 + the signal where one ended us, as a shell tells it

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
