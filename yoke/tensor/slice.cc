#include "yoke/tensor/slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/error.h"

namespace yoke::tensor {

std::vector<int> part_counts_that_work(std::int64_t extent, std::int64_t step) {
  constexpr int kMaxParts = 64;
  std::vector<int> counts = {1};
  for (int parts = 2; parts <= kMaxParts && parts <= extent; ++parts) {
    if (extent % parts == 0 && extent / parts % step == 0) counts.push_back(parts);
  }
  return counts;
}

void check_cut(Range range, std::int64_t extent, std::int64_t step, const std::string& what) {
  if (range.begin < 0 || range.end < range.begin || range.end > extent) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} {} are not within the {} there are", what, to_string(range), extent));
  }
  const bool ends_well = range.end % step == 0 || range.end == extent;
  if (range.begin % step == 0 && ends_well) return;
  const std::vector<int> counts = part_counts_that_work(extent, step);
  throw Error(ErrorCode::kInvalid,
              fmt::format("{} {} of {} would cut a quantization group: cuts are possible at multiples of {}", what,
                          to_string(range), extent, step),
              counts.size() == 1 ? "it cannot be split over ranks"
                                 : fmt::format("numbers of ranks that work: {}", fmt::join(counts, ", ")));
}

}  // namespace yoke::tensor
