// `yoke agent`: the hidden part of the program that serves questions of other machines' commands (yoke/agent/serve.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// The exit status, or nothing for other arguments.
std::optional<int> run_agent_part(const std::vector<std::string>& arguments);

}  // namespace yoke
