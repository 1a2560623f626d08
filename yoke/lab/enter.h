// Running programs in a node, from this machine.
#pragma once
#include <string>
#include <vector>

#include "yoke/lab/layout.h"

namespace yoke::lab {

// Runs argv in the node with our terminal and streams, in the same folder if the node has it, and returns its exit
// status (128 + n where signal n ended it). SIGTERM and SIGHUP are passed on; Ctrl-C reaches it by the terminal.
int run_in_node(const std::string& lab, const LabNode& node, const std::vector<std::string>& argv);

// The node that this process is in: (lab, node name); nothing on a plain machine.
struct InNode {
  std::string lab;
  std::string node;
};
std::optional<InNode> in_node();

}  // namespace yoke::lab
