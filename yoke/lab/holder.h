// The parts of a lab that run on: the holder, which holds every network namespace (so that a node that is powered off
// keeps its cables, as a machine does), and each node's first process. Both are this program again, started with a
// command line that says what they are:
//
//   yoke lab-holder FOLDER NODES
//   yoke lab-node FOLDER NUMBER
//   yoke lab-plain-node FOLDER NUMBER     (plain.h)
//
// A part that is starting tells its starter over a pipe that it is ready, or why not; if the starter dies before that,
// the part ends by itself. Until it has recorded itself (parts.h) it shares the starter's lock.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"
#include "yoke/lab/state.h"

namespace yoke::lab {

inline constexpr int kReadyFd = 3;            // where a starting part reports
inline constexpr int kLockFd = 4;             // the lab's lock, until the part has recorded itself
inline constexpr int kFirstNamespaceFd = 10;  // the holder's descriptor of the switch; node n follows at +n

inline constexpr std::string_view kPlainNodeWord = "lab-plain-node";

// A part on its way up.
struct StartingPart {
  std::string name;
  UniqueFd ready;
};

// Starts this program as a part, detached from terminal and session, its output in `log`.
StartingPart start_part(std::string name, const std::vector<std::string>& arguments, const std::filesystem::path& log,
                        const LabLock& lock);
void wait_until_ready(StartingPart& part, Deadline deadline);  // throws what the part reported

// In the part: all is well, or not. To be called once.
void report_ready();
void report_failure(const std::exception& failure);

// The holder itself; returns when told to end by SIGTERM.
int run_holder(const std::string& lab, int nodes);

}  // namespace yoke::lab
