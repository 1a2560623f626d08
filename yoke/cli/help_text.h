// Texts made from the table of commands: --help, the man page, bash completion.
#pragma once
#include <string>
#include <vector>

#include "yoke/cli/command.h"

namespace yoke {

// The options that every command takes.
OptionTable shared_options(Session& session);

// An option's help with the range that its row has.
std::string help_of(const OptionRow& row);

// `path` is what leads to the command, itself included: {"yoke", "cluster", "show"}.
std::string help_text(const std::vector<std::string>& path, const CommandRow& command);
std::string overview_text(const std::vector<CommandRow>& commands);
std::string man_page(const std::vector<CommandRow>& commands);
std::string bash_completion(const std::vector<CommandRow>& commands);

// The documented table of exit statuses, one line each.
std::string exit_status_text();

}  // namespace yoke
