// The part of Group that measures: a few exchanges when the group is made, the slowest rank counts, rank 0 decides.
#include <algorithm>

#include "yoke/comm/direct/group.h"

namespace yoke::comm::direct {
namespace {

constexpr int kTimes = 5;
// Where nothing is measured, because the ranks of a node outnumber its cores and times would say little.
constexpr std::size_t kStripeDefault = std::size_t{256} << 10;
constexpr std::size_t kByPartsDefault = std::size_t{64} << 10;

}  // namespace

void Group::tune(Deadline deadline) {
  const bool rails = health_->member(0).endpoints.size() > 1, many = health_->size() > 2;
  if (!rails && !many) return;
  // As rank 0 says: whether to measure, then what was found, in KiB.
  std::array<std::int32_t, 3> said = {crowded_ ? 0 : 1, kStripeDefault >> 10, kByPartsDefault >> 10};
  const Collective say{.kind = CollectiveKind::kBroadcast,
                       .send = said.data(),
                       .receive = said.data(),
                       .count = said.size(),
                       .type = tensor::DType::kI32};
  run(say, deadline);
  if (said[0] != 0) {
    if (rails) said[1] = static_cast<std::int32_t>(find_stripe_from(deadline) >> 10);
    if (many) said[2] = static_cast<std::int32_t>(find_by_parts_from(deadline) >> 10);
    run(say, deadline);
  }
  if (rails) tuning_.stripe_from = static_cast<std::size_t>(said[1]) << 10;
  if (many) algorithms_->by_parts_from = static_cast<std::size_t>(said[2]) << 10;
}

// The best of some tries, in seconds, of the rank that was slowest: what all agree on.
double Group::time_all_reduce(std::size_t bytes, AllReduceWay way, Deadline deadline) {
  scratch_.resize(std::max(scratch_.size(), bytes / sizeof(float)));
  const Collective operation{.kind = CollectiveKind::kAllReduce,
                             .send = scratch_.data(),
                             .receive = scratch_.data(),
                             .count = bytes / sizeof(float),
                             .type = tensor::DType::kF32,
                             .op = ReduceOp::kMax};
  algorithms_->by_parts_from = way == AllReduceWay::kByParts ? 0 : SIZE_MAX;
  float best = 1e9F;
  for (int i = 0; i < kTimes; ++i) {
    const Instant begin = real_clock().now();
    run(operation, deadline);
    best = std::min(best, static_cast<float>(to_seconds(real_clock().now() - begin).value));
  }
  algorithms_->by_parts_from = SIZE_MAX;
  run({.kind = CollectiveKind::kAllReduce, .send = &best, .receive = &best, .count = 1, .op = ReduceOp::kMax},
      deadline);
  return best;
}

std::size_t Group::find_by_parts_from(Deadline deadline) {
  for (const std::size_t bytes : {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{256} << 10}) {
    const double one_shot = time_all_reduce(bytes, AllReduceWay::kOneShot, deadline);
    const double by_parts = time_all_reduce(bytes, AllReduceWay::kByParts, deadline);
    if (by_parts < one_shot) return bytes;
  }
  return std::size_t{512} << 10;
}

// From two frames on there is something to divide.
std::size_t Group::find_stripe_from(Deadline deadline) {
  const std::size_t bytes = 2 * LinkTuning::kFrame;
  const double plain = time_all_reduce(bytes, AllReduceWay::kOneShot, deadline);
  tuning_.stripe_from = bytes;
  const double striped = time_all_reduce(bytes, AllReduceWay::kOneShot, deadline);
  tuning_.stripe_from = SIZE_MAX;
  return striped < 0.9 * plain ? bytes : 2 * bytes;
}

}  // namespace yoke::comm::direct
