// What every command is given: the options that all commands share, and the way out to standard output and error.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/error.h"

namespace yoke::spec {
struct Cluster;
}
namespace yoke::terminal {

// For the program on the head node of a lab: the options that were typed outside, as "--lab NAME".
constexpr const char* kGivenVariable = "YOKE_GIVEN_OPTIONS";

struct Session {
  bool json = false;
  bool quiet = false;
  bool verbose = false;   // -v
  bool protocol = false;  // -vv
  std::optional<std::string> cluster_file;
  std::optional<std::string> lab;
  mutable std::shared_ptr<const spec::Cluster> cluster_read = {};  // cluster_file.h reads it once

  // The file that --cluster named, which must be there; else cluster.yaml of the working folder; nothing: there is
  // none.
  std::optional<std::filesystem::path> find_cluster_file() const;

  // How the user said which cluster is meant: "--cluster" or "--lab" and its value, or nothing. On the head node of a
  // lab: what was typed outside.
  std::vector<std::string> given_options() const;

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

}  // namespace yoke::terminal
