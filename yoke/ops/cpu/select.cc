// Choosing tokens: few of many logits can be among the best, and whole blocks are passed over that hold none.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "yoke/ops/cpu/backend.h"

namespace yoke::ops::cpu {
namespace {

// A number that at least `count` of the logits reach: as many blocks have a maximum that large.
float bound_of(const Kernels& kernels, std::span<const float> logits, std::size_t count, std::vector<float>& maxima) {
  constexpr float kAll = -std::numeric_limits<float>::infinity();
  const std::size_t blocks = logits.size() / kLogitBlock;
  count = std::max<std::size_t>(count, 1);  // the maximum is always wanted
  if (blocks < count) return kAll;
  maxima.resize(blocks);
  kernels.block_maxima(logits.data(), static_cast<std::int64_t>(blocks), maxima.data());
  for (float& max : maxima) {
    if (max != max) max = kAll;  // the row is refused anyway, and NaN has no order
  }
  const auto nth = maxima.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(maxima.begin(), nth, maxima.end(), std::greater<>());
  return *nth;
}

}  // namespace

void CpuBackend::bound_row(const SelectRow& select, ref::RowLogits& row) const {
  std::vector<float> maxima;
  row.least = bound_of(kernels_, row.used, static_cast<std::size_t>(select.count), maxima);
  if (!select.raw_mass) return;
  row.least_raw = row.used.data() == row.raw.data() && select.raw_count <= select.count
                      ? row.least
                      : bound_of(kernels_, row.raw, static_cast<std::size_t>(select.raw_count), maxima);
}

void CpuBackend::inspect_piece(const ref::RowLogits& row, const SelectRow& select, tensor::Range range,
                               ref::SelectPart& part) const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  clear(part);
  std::int64_t i = range.begin;
  const bool same = row.used.data() == row.raw.data();
  for (; i + kLogitBlock <= range.end; i += kLogitBlock) {
    std::uint64_t found = kernels_.not_below(row.used.data() + i, row.least);
    if (!same) found |= kernels_.not_below(row.raw.data() + i, kInfinity);  // what is no number
    if (select.raw_mass) found |= kernels_.not_below(row.raw.data() + i, row.least_raw);
    for (; found != 0; found &= found - 1) {
      inspect(row, select, static_cast<std::size_t>(i + std::countr_zero(found)), part);
    }
  }
  for (; i < range.end; ++i) inspect(row, select, static_cast<std::size_t>(i), part);
}

double CpuBackend::mass_of_piece(std::span<const float> logits, double scale, double max) const {
  if (std::isinf(max)) return 0;
  return kernels_.sum_of_exponentials(logits.data(), std::ssize(logits), scale, max);
}

}  // namespace yoke::ops::cpu
