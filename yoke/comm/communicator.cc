#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

template <class Enum>
std::string_view name_of(Enum value) {
  for (const auto& [name, candidate] : enum_names(Enum{})) {
    if (candidate == value) return name;
  }
  return "?";
}

}  // namespace

std::string_view to_string(ReduceOp op) { return name_of(op); }
std::string_view to_string(CollectiveKind kind) { return name_of(kind); }

CollectiveCounts counts_of(const Collective& operation, int rank, int ranks) {
  const std::size_t one = operation.count;
  const std::size_t all = one * static_cast<std::size_t>(ranks);
  const bool is_root = rank == operation.root;
  switch (operation.kind) {
    case CollectiveKind::kAllReduce:
      return {one, one};
    case CollectiveKind::kAllGather:
      return {one, all};
    case CollectiveKind::kReduceScatter:
      return {all, one};
    case CollectiveKind::kBroadcast:
      return {is_root ? one : 0, one};
    case CollectiveKind::kReduce:
      return {one, is_root ? one : 0};
    case CollectiveKind::kGather:
      return {one, is_root ? all : 0};
    case CollectiveKind::kScatter:
      return {is_root ? all : 0, one};
    case CollectiveKind::kAllToAll:
      return {all, all};
    case CollectiveKind::kSend:
      return {one, 0};
    case CollectiveKind::kReceive:
      return {0, one};
    case CollectiveKind::kSendReceive:
      return {one, one};
    case CollectiveKind::kBarrier:
      return {0, 0};
  }
  return {};
}

}  // namespace yoke::comm
