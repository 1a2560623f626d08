// The supervisor of one node: `yoke node`, started by the head of a job (node_channel.h) over ssh or, on its own
// machine, directly. Messages come on standard input and go to standard output; when that channel closes, or the head
// has been silent for 3 s, everything that it started is ended and it exits.
//
// One thread, one poll loop. Output of ranks is forwarded as far as the head has given credit, so a flood neither fills
// memory nor delays a heartbeat: the rank waits in its write().
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// How often each side of a channel shows that it is alive.
inline constexpr double kHeartbeatSeconds = 0.2;
// How much output of a node may be under way, not yet taken by whoever prints it.
inline constexpr long kOutputCredit = 1 << 20;
// In the environment of all that belongs to a job.
inline constexpr const char* kJobMarkVariable = "YOKE_JOB";

// The hidden parts of the program: `yoke node`, and `yoke node clean MARK`, which ends what a job left on this machine.
// Nothing where the arguments are another command's.
std::optional<int> run_job_part(const std::vector<std::string>& arguments);

}  // namespace yoke
