// The processes of a plain lab: the nodes' own, those that carry a node's token in their environment,
// and whatever descends from one.
#pragma once
#include <optional>
#include <string>

namespace yoke::lab {

// Kills them all, or those of one node, and waits until they are gone. The caller's own process and its parents are
// spared: `yoke lab down` may be typed in a node's shell.
void end_plain_processes(const std::string& lab, std::optional<int> node = std::nullopt);

}  // namespace yoke::lab
