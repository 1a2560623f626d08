// The supervisor of one node: `yoke node`, started by the node's agent (yoke/agent/serve.h) for the head of a job
// (node_channel.h). Messages come on standard input and go to standard output; when that channel closes, or the head
// has been silent for 3 s, everything that it started is ended and it exits.
//
// One thread, one poll loop. Output of ranks is forwarded as far as the head has given credit, so a flood neither fills
// memory nor delays a heartbeat: the rank waits in its write().
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/process.h"

namespace yoke::job {

// How often each side of a channel shows that it is alive.
inline constexpr double kHeartbeatSeconds = 0.2;
// How much output of a node may be under way, not yet taken by the one that prints it.
inline constexpr long kOutputCredit = 1 << 20;
// In the environment of all that belongs to a job.
inline constexpr const char* kJobTagVariable = "YOKE_JOB";

// The question to a node's agent, and the program that it then starts and carries the streams of.
Document supervision_question(const std::string& tag);
Command supervisor_command(const Document& question);

// The hidden parts of the program: `yoke node`, and `yoke node clean MARK`, which ends what a job left on this machine.
// Nothing where the arguments are another command's.
std::optional<int> run_job_part(const std::vector<std::string>& arguments);

}  // namespace yoke::job
