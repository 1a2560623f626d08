// Runs a program that talks with the user itself, such as one that asks for a password: in our session and process
// group, so that it has this terminal.
//
//   const int status = run_at_terminal({.argv = {"ssh", "spark-2", "true"}});
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

struct TerminalCommand {
  std::vector<std::string> argv;                     // argv[0] is looked up in PATH where it has no slash
  std::optional<std::filesystem::path> folder = {};  // to run in; ours where missing
  std::optional<std::string> input = {};             // its standard input; ours where missing
  // The terminal sends Ctrl-C to both. kProgram: we ignore it.
  enum class CtrlC { kBoth, kProgram } ctrl_c = CtrlC::kBoth;
};

// Returns the exit status, 128 + n where signal n ended it. SIGTERM and SIGHUP that reach us are passed on as SIGTERM.
// Where a signal reached us, throws Error(kInterrupted) after the program's end.
int run_at_terminal(const TerminalCommand& command);

}  // namespace yoke
