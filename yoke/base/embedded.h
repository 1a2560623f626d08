// Files that the program carries in itself, since it is one file: the machines of tests/fixtures (*.tree), which a lab
// lays over its nodes' /sys. cmake/embed_files.cmake writes the other half at build time, whenever a file changes.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

namespace yoke {

// By the path below tests/fixtures: "spark-pair/machine.tree". The text lives as long as the program.
std::optional<std::string_view> embedded_file(std::string_view path);
std::vector<std::string_view> embedded_files();  // their paths, sorted

}  // namespace yoke
