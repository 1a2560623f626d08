#include "yoke/ops/backend.h"

namespace yoke::ops {

PackedStack::PackedStack(std::span<const tensor::Matrix> stack, std::size_t bytes) : bytes_(bytes) {
  YOKE_CHECK(!stack.empty(), "a stack of no matrices");
  columns_ = stack.front().columns;
  std::int64_t row = 0;
  for (const tensor::Matrix& part : stack) {
    YOKE_CHECK(part.columns == columns_, "{} columns beside {}", part.columns, columns_);
    parts_.push_back({row, row + part.rows});
    row += part.rows;
  }
}

}  // namespace yoke::ops
