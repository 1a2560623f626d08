// What all ranks do in one step, as rank 0 decides it and tells the others. The ranks keep the same table of sequences
// by following the same plans.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/comm/communicator.h"
#include "yoke/engine/request.h"

namespace yoke {

struct PlanRow {
  std::uint64_t id = 0;         // of a sequence
  std::int64_t fresh = 1;       // so many of its tokens that are not in the cache yet
  std::optional<TokenId> made;  // the token that was sampled after its last step
  friend bool operator==(const PlanRow&, const PlanRow&) = default;
};

enum class PlanEnd {
  kNone,
  kEngine,  // the front is gone: no further step follows
};
constexpr auto enum_names(PlanEnd) {
  return std::array{std::pair{"none", PlanEnd::kNone}, std::pair{"engine", PlanEnd::kEngine}};
}

struct StepPlan {
  PlanEnd end = PlanEnd::kNone;
  std::vector<std::uint64_t> released;  // first
  std::vector<Request> admitted;        // then
  std::vector<PlanRow> rows;            // and what is computed; may be nothing
};

std::string encode(const StepPlan& plan);
StepPlan decode_plan(std::string_view bytes);

// From rank 0 to all: rank 0 gives its plan, the others get it.
StepPlan share_plan(Communicator& control, const std::optional<StepPlan>& own);

}  // namespace yoke
