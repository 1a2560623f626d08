// Whether a training run makes steps. A small runner before the script counts the steps of PyTorch's optimizers, one
// file for each rank; the guard of the node reads them. When no rank made a step for too long, each is asked for its
// stack: the one that does not wait for others is named.
//
//   StepWatch steps("/tmp/yoke-launch-…");
//   if (steps.silent_for() > limit) throw Error(ErrorCode::kTimeout, steps.describe());
#pragma once
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"

namespace yoke::launch {

// The script that runs another and counts its steps, and its name in a folder that is the user's.
std::string_view progress_runner();
std::string progress_runner_path(const std::string& folder);
// A command with the runner before its script. Error(kUsage) where no word ends in ".py".
std::vector<std::string> argv_with_progress(const std::vector<std::string>& argv, const std::string& folder);

// A rank's line: its number is the file's.
struct RankSteps {
  int rank = 0;
  std::int64_t steps = 0;
  pid_t pid = 0;
  friend bool operator==(const RankSteps&, const RankSteps&) = default;
};

// Where a rank is, from the innermost frame of its stack that is the user's own, and whether it waits for other ranks.
struct RankPlace {
  std::string place;  // "train.py:12 in load"; empty: it did not say
  bool waits = false;
};
RankPlace read_stack(std::string_view stack);

class StepWatch {
 public:
  // `container`: of Docker, in which the ranks run; empty: none.
  explicit StepWatch(std::filesystem::path folder, std::string container = {})
      : folder_(std::move(folder)), container_(std::move(container)) {}

  void look();
  bool has_begun() const { return sum_ > 0; }
  Seconds silent_for() const;  // since a rank of this node made a step, or since the start

  struct Report {
    std::string text;          // "rank 1 made no step for 6 s after 41; it is at train.py:12 in load"
    bool others_hang = false;  // all ranks of this node wait for others
  };
  // Asks the ranks for their stacks, which takes up to half a second, and longer in a container.
  Report report();

 private:
  using Clock = std::chrono::steady_clock;

  void ask_for_stacks() const;

  std::filesystem::path folder_;
  std::string container_;
  std::vector<RankSteps> ranks_;
  std::int64_t sum_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace yoke::launch
