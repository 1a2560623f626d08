// The SHA-256 of the running program, remembered between commands: it takes 75 ms to compute, a fifth of what a short
// command over all nodes takes.
#pragma once
#include <filesystem>
#include <string>

namespace yoke::remote {

// `memory` is a file in a folder of the user's own. It counts only for the very same file: its place on the disk, size
// and times, of which the kernel sets one at every change.
std::string program_hash(const std::filesystem::path& program, const std::filesystem::path& memory);

}  // namespace yoke::remote
