// A weight [rows = outputs, columns = inputs] of any format that model files hold. Only the layout is described here;
// what the numbers mean, each format in one line (r a row, c a column, s the scale and z the zero that belong to them):
//
//   plain   values f32, bf16 or f16 [rows, columns]                         w = values[r, c]
//   int4    values i32 [rows, ceil(columns / 8)], nibble c % 8, low first   w = (u - z) * s
//   int8    values i8 or u8 [rows, columns]                                w = (v - z) * s
//   fp8     values f8_e4m3 [rows, columns]                                  w = f * s
//   nvfp4   values u8 [rows, columns / 2], even columns in the low nibble   w = e2m1(u) * s * global_scale
//
// s = scales[r / scale_rows, group(c)], with group(c) = order[c] where there is an order, else c / scale_columns. One
// scale for all, one for each row, groups along a row and blocks are therefore the same thing with other steps.
// z of int4 = nibble r % 8 of zeros[r / 8, group(c)] plus zero_offset; 8 where there are no zeros (symmetric).
// z of int8 = zeros[r, group(c)]; without zeros 0 for i8 and 128 for u8.
//
// All parts are views and may be strided or misaligned: what a file holds is described, not copied. A backend packs
// them, or copied() makes them dense. A Matrix is a plain value; copies of it share the bytes.
#pragma once
#include <cstdint>
#include <string_view>

#include "yoke/tensor/slice.h"
#include "yoke/tensor/tensor.h"

namespace yoke::tensor {

enum class MatrixFormat { kPlain, kInt4, kInt8, kFp8, kNvfp4 };
constexpr auto enum_names(MatrixFormat) {
  return std::array{std::pair{"plain", MatrixFormat::kPlain}, std::pair{"int4", MatrixFormat::kInt4},
                    std::pair{"int8", MatrixFormat::kInt8}, std::pair{"fp8", MatrixFormat::kFp8},
                    std::pair{"nvfp4", MatrixFormat::kNvfp4}};
}
std::string_view to_string(MatrixFormat format);

inline constexpr std::int64_t kNibblesPerWord = 8;
inline constexpr int kInt8Middle = 128;  // what an unsigned byte has for 0
inline constexpr std::int64_t kNvfp4Block = 16;

struct Matrix {
  MatrixFormat format = MatrixFormat::kPlain;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Tensor values;
  Tensor scales;  // [row groups, column groups]; f32, bf16 or f16; of nvfp4 f8_e4m3
  std::int64_t scale_rows = 1;
  std::int64_t scale_columns = 1;
  Tensor zeros;  // int4: i32 [ceil(rows / 8), column groups]; int8: as values [rows, column groups]; empty: symmetric
  int zero_offset = 0;  // what is added to a stored zero
  Tensor order;         // int4, int8: i32 [columns], the group of each column; empty: groups are consecutive columns
  float global_scale = 1;

  bool has_zeros() const { return zeros.count() > 0; }
  bool has_order() const { return order.count() > 0; }
  std::size_t bytes() const;

  // Cuts are possible at multiples of these: a group of columns, or a word of packed numbers, is never cut.
  std::int64_t row_step() const;
  std::int64_t column_step() const;
  // A view of a part; Error(kInvalid) where it would cut a group. With an order, columns keep all scales, as any column
  // may belong to any group.
  Matrix sliced(const Slice& slice) const;

  // Every part owned, contiguous and aligned: independent of the files it came from.
  Matrix copied() const;

  // Broken invariants between the parts: a bug of the code that built it.
  void check() const;
};

Matrix plain_matrix(Tensor values);

// What is known of a matrix before its values are read: enough to tell what a packed form of it will take.
struct MatrixInfo {
  MatrixFormat format = MatrixFormat::kPlain;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t scale_rows = 1;
  std::int64_t scale_columns = 1;
  Shape scales{0, 0};  // [row groups, column groups]
  DType value_type = DType::kF32;
  DType scale_type = DType::kF32;
  bool has_zeros = false;
  bool has_order = false;
  std::size_t stored_bytes = 0;  // of all parts, dense
};
MatrixInfo describe(const Matrix& matrix);

}  // namespace yoke::tensor
