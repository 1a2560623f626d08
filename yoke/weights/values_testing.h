// The numbers that a Matrix stands for, one by one as matrix.h defines them: for the tests of this folder, which may
// not use yoke/ops.
#pragma once
#include <vector>

#include "yoke/tensor/matrix.h"

namespace yoke::weights {

inline float scale_at(const tensor::Matrix& matrix, std::int64_t row, std::int64_t column) {
  if (matrix.scales.count() == 0) return 1;
  const std::int64_t group =
      matrix.has_order() ? matrix.order.data<std::int32_t>()[column] : column / matrix.scale_columns;
  const tensor::Tensor& scales = matrix.scales;
  const std::int64_t at = row / matrix.scale_rows * scales.stride(0) + group * scales.stride(1);
  switch (scales.type()) {
    case tensor::DType::kF32:
      return scales.data<float>()[at];
    case tensor::DType::kBf16:
      return tensor::to_float(scales.data<tensor::Bf16>()[at]);
    case tensor::DType::kF16:
      return tensor::to_float(scales.data<tensor::F16>()[at]);
    default:
      return tensor::to_float(scales.data<tensor::F8E4m3>()[at]);
  }
}

inline std::int32_t nibble(std::uint32_t word, std::int64_t index) {
  return static_cast<std::int32_t>(word >> (4 * (index % tensor::kNibblesPerWord)) & 15U);
}

inline std::int32_t zero_at(const tensor::Matrix& matrix, std::int64_t row, std::int64_t column) {
  if (!matrix.has_zeros()) return 8;
  const std::int64_t group =
      matrix.has_order() ? matrix.order.data<std::int32_t>()[column] : column / matrix.scale_columns;
  const tensor::Tensor& zeros = matrix.zeros;
  const std::int64_t at = row / tensor::kNibblesPerWord * zeros.stride(0) + group * zeros.stride(1);
  return nibble(static_cast<std::uint32_t>(zeros.data<std::int32_t>()[at]), row) + matrix.zero_offset;
}

inline float value_at(const tensor::Matrix& matrix, std::int64_t row, std::int64_t column) {
  const tensor::Tensor& values = matrix.values;
  const auto at = [&](std::int64_t index) { return row * values.stride(0) + index * values.stride(1); };
  const float scale = scale_at(matrix, row, column) * matrix.global_scale;
  switch (values.type()) {
    case tensor::DType::kF32:
      return values.data<float>()[at(column)];
    case tensor::DType::kBf16:
      return tensor::to_float(values.data<tensor::Bf16>()[at(column)]);
    case tensor::DType::kF16:
      return tensor::to_float(values.data<tensor::F16>()[at(column)]);
    case tensor::DType::kF8E4m3:
      return tensor::to_float(values.data<tensor::F8E4m3>()[at(column)]) * scale;
    case tensor::DType::kI8:
    case tensor::DType::kU8:
      if (matrix.format == tensor::MatrixFormat::kInt8) {
        const auto number = [](const tensor::Tensor& bytes, std::int64_t index) {
          const std::byte byte = bytes.raw()[index];
          return bytes.type() == tensor::DType::kI8 ? static_cast<std::int8_t>(byte) : std::to_integer<int>(byte);
        };
        int zero = values.type() == tensor::DType::kI8 ? 0 : 128;
        const std::int64_t group =
            matrix.has_order() ? matrix.order.data<std::int32_t>()[column] : column / matrix.scale_columns;
        if (matrix.has_zeros()) zero = number(matrix.zeros, row * matrix.zeros.stride(0) + group);
        return static_cast<float>(number(values, at(column)) - zero) * scale;
      }
      return tensor::kE2m1Values[values.data<std::uint8_t>()[at(column / 2)] >> (4 * (column % 2)) & 15U] * scale;
    default: {
      const auto word = static_cast<std::uint32_t>(values.data<std::int32_t>()[at(column / tensor::kNibblesPerWord)]);
      return static_cast<float>(nibble(word, column) - zero_at(matrix, row, column)) * scale;
    }
  }
}

inline std::vector<float> matrix_values(const tensor::Matrix& view) {
  const tensor::Matrix matrix = view.copied();
  std::vector<float> values;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) values.push_back(value_at(matrix, row, column));
  }
  return values;
}

}  // namespace yoke::weights
