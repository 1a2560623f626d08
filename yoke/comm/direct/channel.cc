#include "yoke/comm/direct/channel.h"

#include <fmt/format.h>

namespace yoke::comm::direct {

void Channel::check_header(const MessageHeader& received) const {
  if (received == expected_) return;
  const bool known = received.kind <= static_cast<std::uint8_t>(CollectiveKind::kBarrier) &&
                     received.type <= static_cast<std::uint8_t>(tensor::DType::kI32) &&
                     received.op <= static_cast<std::uint8_t>(ReduceOp::kAvg);
  throw Error(
      ErrorCode::kInvalid,
      fmt::format("{} is at {}, where {} is at {}", health_.name(peer_),
                  known ? describe(received) : "something unknown", health_.name(health_.rank()), describe(expected_)),
      "all ranks call the same operations with the same sizes in the same order");
}

}  // namespace yoke::comm::direct
