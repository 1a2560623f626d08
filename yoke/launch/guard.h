// Runs one process of an engine and stops it before it takes the last memory of the machine, when one of its processes
// is stopped, or when it makes no tokens any more. docs/launch.md says what it sees and what it cannot see.
//
//   const int status = run_guard({.argv = {"vllm", "serve", …}, .floor = Bytes{8LL << 30}});
//
// The process and all its descendants end with the guard. Error(kExhausted) for memory, kTimeout for a missing token,
// kUnavailable for a stopped process or a lost head; otherwise the exit status of the process.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::launch {

struct GuardOptions {
  std::vector<std::string> argv;
  Bytes floor{0};                     // of available memory; 0: memory is not watched
  Bytes limit{0};                     // of a control group around the process, where one can be made; 0: none
  std::vector<std::string> lower;     // options of the engine to name when memory runs out
  std::vector<std::string> wait_for;  // "ADDRESS:PORT": must answer before the process starts
  std::optional<int> canary_port;     // asks for one token there
  std::string canary_model;
  Seconds canary_limit{8};  // without a token
  Seconds start_limit{1800};
  std::string follow;         // "ADDRESS:PORT" of the head: ends with it, as a rank cannot rejoin
  Seconds follow_limit{10};   // without an answer there, after the first one
  Seconds stopped_limit{4};   // a process that is stopped (SIGSTOP) for so long ends the engine
  std::string progress;       // a folder where ranks count their steps (progress.h)
  Seconds progress_limit{0};  // without a step
  std::string container;      // a Docker container that the process started: it is ended too
  std::string remove;         // a folder that the process reads: it goes when the process has ended
};

int run_guard(const GuardOptions& options);

// On unified memory the GPU eats the system's memory at up to 14 GiB/s: within 0.4 s 5.6 GiB are gone. Elsewhere the
// floor is for the host part only.
Bytes usual_floor(Bytes total, bool unified);

}  // namespace yoke::launch
