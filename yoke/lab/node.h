// A node's first process: makes the node from inside its new namespaces (root, files, keys, hardware tree), starts sshd
// and the watcher, and then waits on whatever dies. With it everything in the node ends.
#pragma once
#include <filesystem>
#include <string>

#include "yoke/lab/layout.h"

namespace yoke::lab {

// The entry of `yoke lab-node FOLDER NUMBER`. Returns an exit status, of interest to nobody.
int run_node(const std::string& lab, int number);

// The file that says, in a node, which lab's node this is: "lab\nnode\n".
inline constexpr const char* kNodeMarkFile = "/run/yoke-lab/node";

// Keys of all nodes, made once on this machine: <node folder>/host_key and user_key with their .pub. A node takes its
// own, and the public halves of the others.
void make_keys(const LabLayout& layout);

}  // namespace yoke::lab
