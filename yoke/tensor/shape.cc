#include "yoke/tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/check.h"

namespace yoke::tensor {

std::string to_string(Range range) { return fmt::format("{} to {}", range.begin, range.end); }

Range equal_part(std::int64_t extent, std::int64_t index, std::int64_t parts) {
  YOKE_CHECK(parts > 0 && extent % parts == 0 && index >= 0 && index < parts, "part {} of {} of {}", index, parts,
             extent);
  const std::int64_t size = extent / parts;
  return {index * size, (index + 1) * size};
}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
  YOKE_CHECK_LE(extents.size(), kMaxRank);
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    YOKE_CHECK_GE(extents[axis], 0);
    extents_[axis] = extents[axis];
  }
}

std::int64_t Shape::operator[](std::size_t axis) const {
  YOKE_CHECK_LT(axis, rank_);
  return extents_[axis];
}

std::int64_t Shape::count() const {
  const auto count = checked_count(extents());
  YOKE_CHECK(count.has_value(), "{} elements", to_string(*this));
  return *count;
}

Shape Shape::with(std::size_t axis, std::int64_t extent) const {
  YOKE_CHECK(axis < rank_ && extent >= 0, "axis {} of {} becomes {}", axis, to_string(*this), extent);
  Shape changed = *this;
  changed.extents_[axis] = extent;
  return changed;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ", ")); }

std::optional<std::int64_t> checked_count(std::span<const std::int64_t> extents) {
  std::int64_t product = 1;
  bool overflow = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0;
    overflow |= __builtin_mul_overflow(product, extent, &product);
  }
  if (overflow) return std::nullopt;
  return product;
}

}  // namespace yoke::tensor
