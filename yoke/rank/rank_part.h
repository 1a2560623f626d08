// The outermost frame of a process that the program starts as a rank: whatever goes wrong in it becomes one line on
// standard error, which the job shows with node and rank in front, and an exit status (docs/errors.md).
#pragma once
#include <functional>

namespace yoke {

// Returns the exit status; nothing is thrown.
int run_rank_part(const std::function<void()>& work) noexcept;

}  // namespace yoke
