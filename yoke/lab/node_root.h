// A node's root: a copy-on-write view of the machine's own, with proc, sys, dev, tmp and run of its own on top. Called
// by the node's first process, in its namespaces.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "yoke/lab/layout.h"

namespace yoke::lab {

// Makes it at `root`, with what the node will have written in `folder`. Returns what could not be had, by name.
std::vector<std::string> make_node_root(const LabLayout& layout, const LabNode& node,
                                        const std::filesystem::path& folder, const std::filesystem::path& root);

void bind_mount(const std::filesystem::path& source, const std::filesystem::path& target, unsigned long flags);

// From now on `root` is "/"; the machine's own files are out of reach.
void change_root(const std::filesystem::path& root);

}  // namespace yoke::lab
