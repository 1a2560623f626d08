// Stored numbers as f32, by the formulas of tensor/matrix.h.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "yoke/tensor/matrix.h"

namespace yoke::ops::ref {

// One row of a matrix; `row` has as many elements as the matrix has columns.
void dequantize_row(const tensor::Matrix& matrix, std::int64_t index, std::span<float> row);

// `count` elements of f32, bf16 or f16 that lie `stride` elements apart.
void to_floats(const std::byte* from, tensor::DType type, std::int64_t stride, std::span<float> to);
void from_floats(std::span<const float> from, tensor::DType type, std::byte* to);  // rounded to nearest, dense
std::vector<float> to_floats(const tensor::Tensor& vector);                        // of one axis

}  // namespace yoke::ops::ref
