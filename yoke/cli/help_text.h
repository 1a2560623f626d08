// Texts made from the table of commands: --help, the man page; and the completion scripts.
#pragma once
#include <string>
#include <vector>

#include "yoke/cli/command.h"

namespace yoke::cli {

// The options that every command takes.
OptionTable shared_options(Session& session);

// An option's help with the range that its row has.
std::string help_of(const OptionRow& row);

// `path` is what leads to the command, itself included: {"yoke", "cluster", "show"}.
std::string help_text(const std::vector<std::string>& path, const CommandRow& command);
std::string overview_text(const std::vector<CommandRow>& commands);
std::string man_page(const std::vector<CommandRow>& commands);
std::string completion_script(std::string_view shell);  // bash, zsh or fish

// The documented table of exit statuses, one line each.
std::string exit_status_text();
Document exit_status_json();

}  // namespace yoke::cli
