// Commands in messages, as they must be typed: with the --cluster or --lab that the user's own command was given.
//
//   commands_as_given("'yoke link discover -o cluster.yaml --force' finds them", {"--cluster", "desk.yaml"})
//     → "'yoke link discover -o desk.yaml --force --cluster desk.yaml' finds them"
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "yoke/spec/finding.h"

namespace yoke::report {

// `given`: the option and its value, or nothing.
std::string commands_as_given(std::string_view text, const std::vector<std::string>& given);
// The fixes of the findings.
void give_options(std::vector<spec::Finding>& findings, const std::vector<std::string>& given);

}  // namespace yoke::report
