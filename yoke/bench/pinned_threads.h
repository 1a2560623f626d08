// One thread on each of some cores, pinned there, which begin each round together: how the ceilings of a machine are
// measured. Where the system does not let us pin (a container's rules), the threads run unpinned and that is said.
#pragma once
#include <functional>
#include <vector>

namespace yoke::bench {

struct PinnedRounds {
  std::vector<double> seconds;  // of each round: from the common start to the end of the last thread
  bool pinned = true;
};

// Every thread makes its own work (memory is then on its own node of the machine), and repeats it in every round.
// What a thread throws is thrown here, after all have ended.
using MakeWork = std::function<std::function<void()>(int core)>;
PinnedRounds run_pinned(const std::vector<int>& cores, int rounds, const MakeWork& make_work);

}  // namespace yoke::bench
