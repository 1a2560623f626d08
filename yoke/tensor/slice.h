// Which part of a weight a rank holds: all of it, some rows (outputs) or some columns (inputs).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/tensor/shape.h"

namespace yoke::tensor {

struct Slice {
  enum class Axis { kWhole, kRows, kColumns };
  Axis axis = Axis::kWhole;
  Range range;

  static Slice whole() { return {}; }
  static Slice rows(Range range) { return {Axis::kRows, range}; }
  static Slice columns(Range range) { return {Axis::kColumns, range}; }
};

// Into how many equal parts an extent can be cut where cuts are allowed at multiples of `step` only. At most 64: more
// ranks than that do not share one tensor.
std::vector<int> part_counts_that_work(std::int64_t extent, std::int64_t step);

// Throws Error(kInvalid) where a range is outside [0, extent) or cuts between multiples of `step`; the hint names the
// numbers of ranks that work. `what` is "rows" or "columns".
void check_cut(Range range, std::int64_t extent, std::int64_t step, const std::string& what);

}  // namespace yoke::tensor
