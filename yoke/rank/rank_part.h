// The far end of rank/start.h: the process that `yoke rank KIND`, a hidden word, makes a rank. Whatever goes wrong in
// it becomes one line on standard error, which the job shows with node and rank in front, and an exit status
// (docs/errors.md).
//
//   return run_rank_part(rank_kinds(), {"engine"});
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/job/rank_place.h"

namespace yoke::rank {

inline constexpr const char* kRankWord = "rank";
inline constexpr const char* kRankTaskVariable = "YOKE_RANK_TASK";

// One kind of work that ranks do.
struct RankKind {
  std::string_view name;        // "engine"
  std::string_view started_by;  // "yoke run"
  void (*run)(const job::RankPlace& place, const Document& task);
};

// Finds place and task in the environment and runs the kind that the arguments name. Returns the exit status.
int run_rank_part(std::span<const RankKind> kinds, const std::vector<std::string>& arguments) noexcept;

// Returns the exit status of the work; nothing is thrown.
int run_rank_frame(const std::function<void()>& work) noexcept;

}  // namespace yoke::rank
