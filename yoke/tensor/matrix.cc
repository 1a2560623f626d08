#include "yoke/tensor/matrix.h"

#include <numeric>

#include "yoke/base/check.h"

namespace yoke::tensor {
namespace {

Range divided(Range range, std::int64_t step) { return {range.begin / step, ceil_divide(range.end, step)}; }

Matrix slice_rows(const Matrix& whole, Range range) {
  check_cut(range, whole.rows, whole.row_step(), "rows");
  Matrix part = whole;
  part.rows = range.size();
  part.values = whole.values.slice(0, range);
  if (whole.scales.count() > 0 && whole.scale_rows < whole.rows) {
    part.scales = whole.scales.slice(0, divided(range, whole.scale_rows));
  }
  const std::int64_t rows_per_zero = whole.format == MatrixFormat::kInt4 ? kNibblesPerWord : 1;
  if (whole.has_zeros()) part.zeros = whole.zeros.slice(0, divided(range, rows_per_zero));
  return part;
}

Matrix slice_columns(const Matrix& whole, Range range) {
  check_cut(range, whole.columns, whole.column_step(), "columns");
  const std::int64_t per_value = whole.format == MatrixFormat::kInt4    ? kNibblesPerWord
                                 : whole.format == MatrixFormat::kNvfp4 ? 2
                                                                        : 1;
  Matrix part = whole;
  part.columns = range.size();
  part.values = whole.values.slice(1, divided(range, per_value));
  if (whole.has_order()) {
    part.order = whole.order.slice(0, range);
  } else if (whole.scales.count() > 0 && whole.scale_columns < whole.columns) {
    part.scales = whole.scales.slice(1, divided(range, whole.scale_columns));
    if (whole.has_zeros()) part.zeros = whole.zeros.slice(1, divided(range, whole.scale_columns));
  }
  return part;
}

}  // namespace

std::string_view to_string(MatrixFormat format) {
  for (const auto& [name, candidate] : enum_names(MatrixFormat{})) {
    if (candidate == format) return name;
  }
  return "?";
}

std::size_t Matrix::bytes() const { return values.bytes() + scales.bytes() + zeros.bytes() + order.bytes(); }

std::int64_t Matrix::row_step() const {
  if (format == MatrixFormat::kPlain) return 1;
  const std::int64_t group = scale_rows < rows ? scale_rows : 1;
  return has_zeros() && format == MatrixFormat::kInt4 ? std::lcm(group, kNibblesPerWord) : group;
}

std::int64_t Matrix::column_step() const {
  const bool grouped = format != MatrixFormat::kPlain && !has_order() && scale_columns < columns;
  const std::int64_t group = grouped ? scale_columns : 1;
  switch (format) {
    case MatrixFormat::kPlain:
    case MatrixFormat::kInt8:
    case MatrixFormat::kFp8:
      return group;
    case MatrixFormat::kInt4:
      return std::lcm(group, kNibblesPerWord);
    case MatrixFormat::kNvfp4:
      return kNvfp4Block;
  }
  return 1;
}

Matrix Matrix::sliced(const Slice& slice) const {
  switch (slice.axis) {
    case Slice::Axis::kWhole:
      return *this;
    case Slice::Axis::kRows:
      return slice_rows(*this, slice.range);
    case Slice::Axis::kColumns:
      return slice_columns(*this, slice.range);
  }
  return *this;
}

Matrix Matrix::copied() const {
  Matrix copy = *this;
  copy.values = values.copied();
  copy.scales = scales.copied();
  copy.zeros = zeros.copied();
  copy.order = order.copied();
  return copy;
}

void Matrix::check() const {
  const auto expect = [](const Tensor& tensor, const Shape& shape) {
    YOKE_CHECK(tensor.shape() == shape, "{} where {} is needed", to_string(tensor.shape()), to_string(shape));
  };
  YOKE_CHECK(rows >= 0 && columns >= 0 && scale_rows > 0 && scale_columns > 0, "{} x {}", rows, columns);
  if (format == MatrixFormat::kPlain) return expect(values, {rows, columns});
  const std::int64_t groups = has_order() ? scales.extent(1) : ceil_divide(columns, scale_columns);
  expect(scales, {ceil_divide(rows, scale_rows), groups});
  if (format == MatrixFormat::kFp8 || format == MatrixFormat::kInt8) expect(values, {rows, columns});
  if (format == MatrixFormat::kNvfp4) expect(values, {rows, columns / 2});
  if (format == MatrixFormat::kInt4) expect(values, {rows, ceil_divide(columns, kNibblesPerWord)});
  if (format == MatrixFormat::kInt8) {
    YOKE_CHECK(
        (values.type() == DType::kI8 || values.type() == DType::kU8) && (!has_zeros() || zeros.type() == values.type()),
        "{} with zeros of {}", to_string(values.type()), to_string(zeros.type()));
    if (has_zeros()) expect(zeros, {rows, groups});
  } else if (has_zeros()) {
    expect(zeros, {ceil_divide(rows, kNibblesPerWord), groups});
  }
  if (has_order()) expect(order, {columns});
}

MatrixInfo describe(const Matrix& matrix) {
  return {.format = matrix.format,
          .rows = matrix.rows,
          .columns = matrix.columns,
          .scale_rows = matrix.scale_rows,
          .scale_columns = matrix.scale_columns,
          .scales = matrix.scales.shape().rank() == 2 ? matrix.scales.shape() : Shape{0, 0},
          .value_type = matrix.values.type(),
          .scale_type = matrix.scales.type(),
          .has_zeros = matrix.has_zeros(),
          .has_order = matrix.has_order(),
          .stored_bytes = matrix.bytes()};
}

Matrix plain_matrix(Tensor values) {
  Matrix matrix{.rows = values.extent(0), .columns = values.extent(1), .values = std::move(values)};
  matrix.check();
  return matrix;
}

}  // namespace yoke::tensor
