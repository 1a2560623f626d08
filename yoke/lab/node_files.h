// The files of a node that differ from the host's: names, keys, sshd's configuration.
#pragma once
#include <filesystem>

#include "yoke/lab/layout.h"

namespace yoke::lab {

// Writes them below `root`, the node's root as seen from outside.
void write_node_files(const LabLayout& layout, const LabNode& node, const std::filesystem::path& root);

}  // namespace yoke::lab
