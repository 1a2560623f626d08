// Slurm's short form of many host names: "b300-[1-4,7],login" is b300-1, b300-2, b300-3, b300-4, b300-7 and login;
// "rack[1-2]n[01-16]" is 32 names, with the zeros of the first number kept.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace yoke::spec {

// In the order of the list, as `scontrol show hostnames` prints them. Throws Error(kInvalid) naming what is wrong.
std::vector<std::string> expand_hostlist(std::string_view list);

bool is_hostlist(std::string_view text);  // it stands for other names than itself

}  // namespace yoke::spec
