// Files that the program carries in itself, since it is one file: the machines of tests/fixtures (*.tree), which a lab
// lays over its nodes' /sys, the tokenizer of models/nano, which made models get, docs/checks.md, which `yoke explain`
// quotes, the descriptions of engines, and the page of `yoke serve`. cmake/embed_files.cmake writes the other half at
// build time, whenever a file changes.
#pragma once
#include <optional>
#include <string_view>

namespace yoke {

// A machine by its path below tests/fixtures ("spark-pair/machine.tree"), others by their path in the repository
// ("models/nano/tokenizer.json"). The text lives as long as the program.
std::optional<std::string_view> embedded_file(std::string_view path);

}  // namespace yoke
