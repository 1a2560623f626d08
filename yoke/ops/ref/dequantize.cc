#include "yoke/ops/ref/dequantize.h"

#include <algorithm>
#include <array>

#include "yoke/base/check.h"

namespace yoke::ops::ref {
namespace {

// All 256 values of fp8: looked up, as decoding one takes several times as long.
const std::array<float, 256>& fp8_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> table{};
    for (std::size_t bits = 0; bits < 256; ++bits)
      table[bits] = tensor::to_float(tensor::F8E4m3{static_cast<std::uint8_t>(bits)});
    return table;
  }();
  return values;
}

template <class T>
float as_float(const T& value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <class T>
void convert(const std::byte* from, std::int64_t stride, std::span<float> to) {
  const T* const values = reinterpret_cast<const T*>(from);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = as_float(values[static_cast<std::int64_t>(i) * stride]);
}

const std::byte* place(const tensor::Tensor& matrix, std::int64_t row) {
  YOKE_CHECK(matrix.is_aligned(), "{} of {}", tensor::to_string(matrix.shape()), tensor::to_string(matrix.type()));
  return matrix.raw() + row * matrix.stride(0) * static_cast<std::int64_t>(tensor::size_of(matrix.type()));
}

// The scales of a row, in room of this thread that lasts until its next call: rows are read by the million.
std::span<const float> scales_of(const tensor::Tensor& matrix, std::int64_t row) {
  thread_local std::vector<float> values;
  values.resize(static_cast<std::size_t>(matrix.extent(1)));
  to_floats(place(matrix, row), matrix.type(), matrix.stride(1), values);
  return values;
}

unsigned nibble(std::int32_t word, std::int64_t index) { return static_cast<std::uint32_t>(word) >> (4 * index) & 15U; }

// What each of the sixteen codes stands for in one group of a row: (u - z) * s.
using CodeValues = std::array<float, 16>;

std::span<const CodeValues> code_values_of(const tensor::Matrix& matrix, std::int64_t r,
                                           std::span<const float> scales) {
  thread_local std::vector<CodeValues> groups;  // as scales_of()
  groups.resize(scales.size());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    int zero = 8;
    if (matrix.has_zeros()) {
      const std::int32_t* const words = matrix.zeros.row<std::int32_t>(r / tensor::kNibblesPerWord);
      const std::int32_t word = words[static_cast<std::int64_t>(group) * matrix.zeros.stride(1)];
      zero = static_cast<int>(nibble(word, r % tensor::kNibblesPerWord)) + matrix.zero_offset;
    }
    for (int u = 0; u < 16; ++u)
      groups[group][static_cast<std::size_t>(u)] = static_cast<float>(u - zero) * scales[group];
  }
  return groups;
}

void dequantize_int4(const tensor::Matrix& matrix, std::int64_t r, std::span<const float> scales,
                     std::span<float> row) {
  const std::span<const CodeValues> groups = code_values_of(matrix, r, scales);
  const std::int32_t* const words = matrix.values.row<std::int32_t>(r);
  const std::int64_t stride = matrix.values.stride(1);
  const auto code = [&](std::int64_t c) {
    return nibble(words[c / tensor::kNibblesPerWord * stride], c % tensor::kNibblesPerWord);
  };
  if (matrix.has_order()) {
    const std::int32_t* const order = matrix.order.data<std::int32_t>();
    for (std::int64_t c = 0; c < matrix.columns; ++c) row[c] = groups[static_cast<std::size_t>(order[c])][code(c)];
    return;
  }
  std::int64_t c = 0;
  for (const CodeValues& values : groups) {
    const std::int64_t end = std::min(c + matrix.scale_columns, matrix.columns);
    while (c < end) {  // a whole word at once where a group holds one
      if (c % tensor::kNibblesPerWord != 0 || end - c < tensor::kNibblesPerWord) {
        row[c] = values[code(c)];
        ++c;
        continue;
      }
      auto word = static_cast<std::uint32_t>(words[c / tensor::kNibblesPerWord * stride]);
      for (std::int64_t i = 0; i < tensor::kNibblesPerWord; ++i, word >>= 4) row[c++] = values[word & 15U];
    }
  }
}

// Signed or unsigned bytes as whole numbers.
int byte_at(const tensor::Tensor& bytes, std::int64_t r, std::int64_t c) {
  const std::byte value = bytes.raw()[r * bytes.stride(0) + c * bytes.stride(1)];
  return bytes.type() == tensor::DType::kI8 ? static_cast<std::int8_t>(value) : std::to_integer<int>(value);
}

void dequantize_int8(const tensor::Matrix& matrix, std::int64_t r, std::span<const float> scales,
                     std::span<float> row) {
  const int middle = matrix.values.type() == tensor::DType::kU8 ? tensor::kInt8Middle : 0;
  for (std::int64_t c = 0; c < matrix.columns; ++c) {
    const std::int64_t group = matrix.has_order() ? matrix.order.data<std::int32_t>()[c] : c / matrix.scale_columns;
    const int zero = matrix.has_zeros() ? byte_at(matrix.zeros, r, group) : middle;
    row[static_cast<std::size_t>(c)] =
        static_cast<float>(byte_at(matrix.values, r, c) - zero) * scales[static_cast<std::size_t>(group)];
  }
}

void dequantize_nvfp4(const tensor::Matrix& matrix, std::int64_t r, std::span<const float> scales,
                      std::span<float> row) {
  const std::uint8_t* byte = matrix.values.row<std::uint8_t>(r);
  float* to = row.data();
  for (const float block_scale : scales) {
    const float scale = block_scale * matrix.global_scale;
    for (std::int64_t i = 0; i < tensor::kNvfp4Block / 2; ++i, byte += matrix.values.stride(1)) {
      *to++ = tensor::kE2m1Values[*byte & 15U] * scale;
      *to++ = tensor::kE2m1Values[*byte >> 4] * scale;
    }
  }
}

void dequantize_fp8(const tensor::Matrix& matrix, std::int64_t r, std::span<const float> scales, std::span<float> row) {
  to_floats(place(matrix.values, r), matrix.values.type(), matrix.values.stride(1), row);
  std::int64_t c = 0;
  for (const float scale : scales) {
    const std::int64_t end = std::min(c + matrix.scale_columns, matrix.columns);
    for (; c < end; ++c) row[c] *= scale;
  }
}

}  // namespace

void to_floats(const std::byte* from, tensor::DType type, std::int64_t stride, std::span<float> to) {
  switch (type) {
    case tensor::DType::kF32:
      return convert<float>(from, stride, to);
    case tensor::DType::kBf16:
      return convert<tensor::Bf16>(from, stride, to);
    case tensor::DType::kF16:
      return convert<tensor::F16>(from, stride, to);
    case tensor::DType::kF8E4m3: {
      const std::array<float, 256>& values = fp8_values();
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = values[std::to_integer<std::uint8_t>(from[static_cast<std::int64_t>(i) * stride])];
      }
      return;
    }
    default:
      YOKE_CHECK(false, "{} is no number to compute with", tensor::to_string(type));
  }
}

void from_floats(std::span<const float> from, tensor::DType type, std::byte* to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (type == tensor::DType::kF32) {
      reinterpret_cast<float*>(to)[i] = from[i];
    } else if (type == tensor::DType::kBf16) {
      reinterpret_cast<tensor::Bf16*>(to)[i] = tensor::to_bf16(from[i]);
    } else {
      YOKE_CHECK(type == tensor::DType::kF16, "{} is no number to compute with", tensor::to_string(type));
      reinterpret_cast<tensor::F16*>(to)[i] = tensor::to_f16(from[i]);
    }
  }
}

std::vector<float> to_floats(const tensor::Tensor& vector) {
  YOKE_CHECK_EQ(vector.shape().rank(), 1U);
  std::vector<float> values(static_cast<std::size_t>(vector.count()));
  to_floats(vector.raw(), vector.type(), vector.stride(0), values);
  return values;
}

void dequantize_row(const tensor::Matrix& matrix, std::int64_t index, std::span<float> row) {
  YOKE_CHECK(index >= 0 && index < matrix.rows && std::ssize(row) == matrix.columns, "row {} of {} x {} into {}", index,
             matrix.rows, matrix.columns, row.size());
  if (matrix.format == tensor::MatrixFormat::kPlain) {
    return to_floats(place(matrix.values, index), matrix.values.type(), matrix.values.stride(1), row);
  }
  const std::span<const float> scales = scales_of(matrix.scales, index / matrix.scale_rows);
  if (matrix.format == tensor::MatrixFormat::kInt4) return dequantize_int4(matrix, index, scales, row);
  if (matrix.format == tensor::MatrixFormat::kInt8) return dequantize_int8(matrix, index, scales, row);
  if (matrix.format == tensor::MatrixFormat::kNvfp4) return dequantize_nvfp4(matrix, index, scales, row);
  dequantize_fp8(matrix, index, scales, row);
}

}  // namespace yoke::ops::ref
