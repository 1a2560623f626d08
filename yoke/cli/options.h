// The options of one command, as a table: parsed by the command line, listed by --help, the man page and completion.
//
//   options.value("--nodes", "N", "how many nodes", chosen->nodes);
//   options.flag("--unconfigured", "leave the fast interfaces as from the factory", chosen->bare);
//   options.positional("NODE", "a node's name or number", chosen->node, Presence::kRequired);
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::cli {

enum class Presence { kOptional, kRequired };

// What a number may be; help prints it, and another one is refused with it.
struct NumberRange {
  std::optional<double> min = {}, max = {};
};
std::string to_string(const NumberRange& range);  // "1 to 256", "at least 1"; empty where all are taken

struct OptionRow {
  enum class Kind { kFlag, kValue, kPositional, kPositionals, kRest } kind;
  std::string name;        // "--nodes", "-p,--prompt", or a positional's "NODE"
  std::string value_name;  // of a kValue
  std::string help;
  Presence presence = Presence::kOptional;
  NumberRange range = {};                       // of a number or a time in seconds; the setter checks
  std::vector<std::string> choices;             // for completion; the setter checks
  std::function<void(const std::string&)> set;  // a flag gets ""
};

class OptionTable {
 public:
  void flag(std::string name, std::string help, bool& target);
  void value(std::string name, std::string value_name, std::string help, std::string& target);
  void value(std::string name, std::string value_name, std::string help, std::optional<std::string>& target);
  void value(std::string name, std::string value_name, std::string help, std::filesystem::path& target);
  void value(std::string name, std::string value_name, std::string help, int& target, NumberRange range = {});
  // Nothing where it was not given; only finite numbers are taken.
  void value(std::string name, std::string value_name, std::string help, std::optional<int>& target,
             NumberRange range = {});
  void value(std::string name, std::string value_name, std::string help, std::optional<std::uint64_t>& target);
  void value(std::string name, std::string value_name, std::string help, std::optional<double>& target,
             NumberRange range = {});
  void value(std::string name, std::string value_name, std::string help, Bytes& target);
  void value(std::string name, std::string value_name, std::string help, BitsPerSecond& target);
  void value(std::string name, std::string value_name, std::string help,
             std::optional<BitsPerSecond>& target);  // or none
  // A number without a unit is seconds.
  void value(std::string name, std::string value_name, std::string help, Seconds& target, NumberRange range = {});
  void values(std::string name, std::string value_name, std::string help, std::vector<std::string>& target);  // many
  void choice(std::string name, std::string value_name, std::string help, std::vector<std::string> choices,
              std::string& target);
  void positional(std::string name, std::string help, std::string& target, Presence presence,
                  std::vector<std::string> choices = {});
  void positional(std::string name, std::string help, std::optional<std::string>& target, Presence presence);
  // Any number of them; none only where they are optional. `first_words` are for completion only.
  void positionals(std::string name, std::string help, std::vector<std::string>& target, Presence presence,
                   std::vector<std::string> first_words = {});
  void rest(std::string name, std::string help, std::vector<std::string>& target);  // all that follows, after "--"

  const std::vector<OptionRow>& rows() const { return rows_; }

 private:
  void add_value(std::string name, std::string value_name, std::string help,
                 std::function<void(const std::string&)> set, NumberRange range = {});
  std::vector<OptionRow> rows_;
};

}  // namespace yoke::cli
