// How many elements a tensor has along each axis, outermost first: Shape{2, 3} prints as "[2, 3]". A plain value of at
// most eight axes without allocations. Extents are never negative.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace yoke::tensor {

// A half-open interval of rows or columns.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(Range, Range) = default;
};
std::string to_string(Range range);  // "64 to 128"

// a / b, rounded up; right also where a + b would not fit, as both may come from files.
constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// Part `index` of `parts` equal parts of an extent. The extent must be divisible: who splits asks first.
Range equal_part(std::int64_t extent, std::int64_t index, std::int64_t parts);

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;  // no axes: one element
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), rank_}; }
  std::int64_t count() const;  // of elements
  Shape with(std::size_t axis, std::int64_t extent) const;

  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};  // zero beyond the rank, so that equality is memberwise
  std::size_t rank_ = 0;
};
std::string to_string(const Shape& shape);

// The product, or nothing where it does not fit: for shapes that a file claims.
std::optional<std::int64_t> checked_count(std::span<const std::int64_t> extents);

}  // namespace yoke::tensor
