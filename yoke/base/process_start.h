// The one place that forks. Used by process.cc only: a started program, its pipes, and nothing else of ours inherited.
#pragma once
#include <sys/types.h>

#include <string>

#include "yoke/base/files.h"
#include "yoke/base/process.h"

namespace yoke {

struct StartedProgram {
  pid_t pid = -1;
  UniqueFd input;  // missing where the input is a file or nothing
  UniqueFd out, err;
};

// Returns once the program runs (or throws why not). It leads its own session, and so its own process group, and has
// `token` in its environment's YOKE_PROCESS, behind the tokens that we ourselves carry. Our ends of the pipes do not
// block.
StartedProgram start_program(const Command& command, const std::string& token);

}  // namespace yoke
