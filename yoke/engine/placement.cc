#include "yoke/engine/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke::engine {

int tensor_size(int ranks, const std::vector<int>& counts_that_work) {
  int largest = 1;
  for (const int count : counts_that_work) {
    if (ranks % count == 0) largest = std::max(largest, count);
  }
  return largest;
}

std::vector<std::int64_t> cut_layers(const std::vector<StageRoom>& stages, std::int64_t layers, Bytes layer) {
  const std::int64_t count = std::ssize(stages);
  if (count > layers) {
    throw Error(ErrorCode::kInvalid, fmt::format("{} stages cannot share {} layers", count, layers),
                fmt::format("use at most {} ranks", layers));
  }
  std::vector<std::int64_t> sizes(stages.size(), 1);
  for (std::int64_t given = count; given < layers; ++given) {
    const auto part_of_room = [&](std::size_t stage) {
      const double taken = static_cast<double>(stages[stage].ends.value) +
                           static_cast<double>(sizes[stage] + 1) * static_cast<double>(layer.value);
      return taken / static_cast<double>(std::max<std::int64_t>(1, stages[stage].available.value));
    };
    std::size_t best = 0;
    for (std::size_t stage = 1; stage < stages.size(); ++stage) {
      if (part_of_room(stage) < part_of_room(best)) best = stage;
    }
    ++sizes[best];
  }
  std::vector<std::int64_t> cut;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) cut.push_back(std::exchange(first, first + size));
  return cut;
}

models::Mesh place_in_mesh(int rank, int tensor, const std::vector<std::int64_t>& cut, std::int64_t layers) {
  const int stages = static_cast<int>(cut.size());
  const int stage = rank / tensor;
  YOKE_CHECK(stage < stages, "rank {} of {} stages of {}", rank, stages, tensor);
  const auto index = static_cast<std::size_t>(stage);
  return {.rank = rank % tensor,
          .size = tensor,
          .stage = stage,
          .stages = stages,
          .layers = {cut[index], index + 1 < cut.size() ? cut[index + 1] : layers}};
}

}  // namespace yoke::engine
