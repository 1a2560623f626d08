// Puts the running program onto a node that lacks it, so that a cluster needs yoke installed on one machine only. It
// lies there by its content, at $XDG_CACHE_HOME/yoke/<SHA-256>/yoke (or under ~/.cache): another version is another
// file, and nothing that runs is overwritten. Several carriers may come at once.
//
//   const std::string there = carry_program(shell, "/proc/self/exe");
//   shell.start({.argv = {there, "rank"}});
#pragma once
#include <filesystem>
#include <string>

#include "yoke/remote/remote_shell.h"

namespace yoke {

struct CarryOptions {
  Seconds timeout{600};
};

// The path over there. One round trip where it is there already, and whole: by SHA-256, or by size where the node has
// no sha256sum. Throws kUnsupported for a node with another kind of processor, kExhausted for a full disk. Versions
// that nobody carried for 30 days are deleted with the next that is copied.
std::string carry_program(RemoteShell& shell, const std::filesystem::path& program, const CarryOptions& options = {});

// "x86_64", "aarch64": what `uname -m` says where this program runs. Throws kInvalid for what is no ELF program.
std::string program_machine(const std::filesystem::path& program);

}  // namespace yoke
