// The man page, in groff's man macros, from the table of commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/build_info.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/cli/help_text.h"

namespace yoke {
namespace {

// Backslashes and hyphens mean something to groff, and so does a dot or quote at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

void add_options(const OptionTable& options, std::string& out) {
  for (const OptionRow& row : options.rows()) {
    out += fmt::format(".TP\n.B {}\n{}\n", roff(row.value_name.empty() ? row.name : row.name + " " + row.value_name),
                       roff(help_of(row)));
  }
}

void add_command(const std::string& path, const CommandRow& command, std::string& out) {
  const std::string whole = path + " " + command.name;
  out += fmt::format(".SS {}\n{}\n", roff(whole), roff(command.description));
  OptionTable options;
  if (command.prepare) command.prepare(options);
  add_options(options, out);
  for (const Example& example : command.examples) {
    out += fmt::format(".PP\n.nf\n{}\n.fi\n.RS\n{}\n.RE\n", roff(example.line), roff(example.says));
  }
  for (const CommandRow& sub : command.subcommands) add_command(whole, sub, out);
}

}  // namespace

std::string man_page(const std::vector<CommandRow>& commands) {
  std::string out = fmt::format(".TH YOKE 1 \"\" \"yoke {}\" \"User Commands\"\n", build_info().version);
  out += ".SH NAME\nyoke \\- one model, several machines\n.SH SYNOPSIS\n.B yoke\n.I COMMAND\n[options]\n.SH COMMANDS\n";
  for (const CommandRow& command : commands) add_command("yoke", command, out);
  out += ".SH OPTIONS OF EVERY COMMAND\n";
  Session unused;
  add_options(shared_options(unused), out);
  out += ".SH EXIT STATUS\n.nf\n" + roff(exit_status_text()) + ".fi\n";
  out += ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nwhen set, nothing is coloured\n";
  return out;
}

}  // namespace yoke
