#include "yoke/comm/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace yoke::comm {
namespace {

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

}  // namespace

void check_operation(const Collective& operation, int rank, int ranks) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalid, fmt::format("rank {}: {}: {}", rank, signature(operation), why));
  };
  constexpr std::array kCarried = {tensor::DType::kF32, tensor::DType::kBf16, tensor::DType::kF16, tensor::DType::kI8,
                                   tensor::DType::kI32};
  if (std::find(kCarried.begin(), kCarried.end(), operation.type) == kCarried.end()) {
    refuse("collectives carry f32, bf16, f16, i8 and i32");
  }
  const auto is_rank = [&](int number) { return number >= 0 && number < ranks; };
  if ((has_root(operation.kind) || is_point_to_point(operation.kind)) && !is_rank(operation.root)) {
    refuse(fmt::format("there is no rank {} among {}", operation.root, ranks));
  }
  if (operation.kind == CollectiveKind::kSendReceive && !is_rank(operation.source)) {
    refuse(fmt::format("there is no rank {} among {}", operation.source, ranks));
  }
  const CollectiveCounts counts = counts_of(operation, rank, ranks);
  if (counts.send > 0 && operation.send == nullptr) refuse("the buffer to send is missing");
  if (counts.receive > 0 && operation.receive == nullptr) refuse("the buffer to receive is missing");
}

std::string signature(const Collective& operation) {
  const CollectiveKind kind = operation.kind;
  if (kind == CollectiveKind::kBarrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", to_string(kind), operation.count, tensor::to_string(operation.type));
  if (reduces(kind)) text += fmt::format(" ({})", to_string(operation.op));
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter || kind == CollectiveKind::kReceive) {
    text += fmt::format(" from rank {}", operation.root);
  } else if (has_root(kind) || is_point_to_point(kind)) {
    text += fmt::format(" to rank {}", operation.root);
  }
  if (kind == CollectiveKind::kSendReceive) text += fmt::format(" and from rank {}", operation.source);
  return text;
}

int place_in_group(const std::vector<int>& ranks, int rank, int size) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("rank {} of {} cannot form the group {{{}}}: {}", rank, size, fmt::join(ranks, ", "), why));
  };
  if (std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end()) {
    refuse("the ranks must ascend");
  }
  if (!ranks.empty() && (ranks.front() < 0 || ranks.back() >= size)) refuse("not all of them exist");
  const auto place = std::find(ranks.begin(), ranks.end(), rank);
  if (place == ranks.end()) refuse("it is not one of them");
  return static_cast<int>(place - ranks.begin());
}

}  // namespace yoke::comm
