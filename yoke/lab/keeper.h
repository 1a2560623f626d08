// The parts of a lab that run on: the keeper, which holds every network namespace (so that a node that is powered off
// keeps its cables, as a machine does), and each node's first process. Both are this program again, started with a
// command line that says what they are:
//
//   yoke lab-keeper FOLDER NODES
//   yoke lab-node FOLDER NUMBER
//   yoke lab-plain-node FOLDER NUMBER     (plain.h)
//
// A part that is starting tells its starter over a pipe that it is ready, or why not; if the starter dies before that,
// the part ends by itself.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/files.h"

namespace yoke {

inline constexpr int kReadyFd = 3;            // where a starting part reports
inline constexpr int kFirstNamespaceFd = 10;  // the keeper's descriptor of the switch; node n follows at +n

inline constexpr std::string_view kPlainNodeWord = "lab-plain-node";

// From a command line: 0 for the keeper of the lab in this folder, n for node n, nothing for any other process.
std::optional<int> lab_part_of(const std::vector<std::string>& words, const std::string& folder);

// A part on its way up.
struct StartingPart {
  std::string name;
  UniqueFd ready;
};

// Starts this program as a part, detached from terminal and session, its output in `log`.
StartingPart start_part(std::string name, const std::vector<std::string>& arguments, const std::filesystem::path& log);
void wait_until_ready(StartingPart& part, Deadline deadline);  // throws what the part reported

// In the part: all is well, or not. To be called once.
void report_ready();
void report_failure(const std::exception& failure);

// The keeper itself; returns when told to end by SIGTERM.
int run_keeper(int nodes);

}  // namespace yoke
