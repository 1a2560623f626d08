#include "yoke/tensor/matrix.h"

#include <gtest/gtest.h>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::tensor {
namespace {

Matrix int4(std::int64_t rows, std::int64_t columns, std::int64_t group) {
  Matrix matrix{.format = MatrixFormat::kInt4, .rows = rows, .columns = columns};
  matrix.values = Tensor::zeros({rows, (columns + 7) / 8}, DType::kI32);
  matrix.scales = Tensor::zeros({rows, (columns + group - 1) / group}, DType::kBf16);
  matrix.scale_columns = group;
  matrix.check();
  return matrix;
}

TEST(Matrix, PlainOnesAreCutAnywhere) {
  const Matrix matrix = plain_matrix(Tensor::zeros({5, 7}, DType::kF32));
  const Matrix part = matrix.sliced(Slice::columns({3, 4}));
  EXPECT_EQ(part.columns, 1);
  EXPECT_EQ(part.values.stride(0), 7);
  EXPECT_EQ(matrix.sliced(Slice::rows({0, 0})).rows, 0);
  EXPECT_ERROR(matrix.sliced(Slice::rows({4, 6})), ErrorCode::kInvalid, "rows 4 to 6 are not within the 5 there are");
}

TEST(Matrix, AGroupIsNeverCutAndTheSizesThatWorkAreNamed) {
  const Matrix matrix = int4(6, 512, 128);
  EXPECT_EQ(matrix.column_step(), 128);
  EXPECT_EQ(matrix.row_step(), 1);
  const Matrix part = matrix.sliced(Slice::columns({128, 384}));
  part.check();
  EXPECT_EQ(part.scales.extent(1), 2);
  EXPECT_EQ(part.scales.raw() - matrix.scales.raw(), 2);
  EXPECT_ERROR(matrix.sliced(Slice::columns({0, 64})), ErrorCode::kInvalid,
               "columns 0 to 64 of 512 would cut a quantization group: cuts are possible at multiples of 128",
               "numbers of ranks that work: 1, 2, 4");
  EXPECT_ERROR(int4(6, 128, 128).sliced(Slice::columns({0, 60})), ErrorCode::kInvalid, "multiples of 8");
}

TEST(Matrix, AGroupSmallerThanAWordIsCutAtWords) { EXPECT_EQ(int4(4, 24, 3).column_step(), 24); }

TEST(Matrix, PerChannelScalesStayWholeUnderColumnSlices) {
  const Matrix matrix = int4(6, 64, 64);
  const Matrix part = matrix.sliced(Slice::columns({8, 24}));
  part.check();
  EXPECT_EQ(part.scales.extent(1), 1);
}

TEST(Matrix, PackedZerosAreCutByEights) {
  Matrix matrix = int4(20, 64, 32);
  matrix.zeros = Tensor::zeros({3, 2}, DType::kI32);
  matrix.check();
  EXPECT_EQ(matrix.row_step(), 8);
  const Matrix part = matrix.sliced(Slice::rows({16, 20}));
  part.check();
  EXPECT_EQ(part.zeros.extent(0), 1);
  EXPECT_ERROR(matrix.sliced(Slice::rows({0, 10})), ErrorCode::kInvalid, "cuts are possible at multiples of 8");
}

TEST(Matrix, WithAnOrderColumnsKeepAllScales) {
  Matrix matrix = int4(4, 64, 16);
  matrix.order = Tensor::zeros({64}, DType::kI32);
  const Matrix part = matrix.sliced(Slice::columns({8, 16}));
  part.check();
  EXPECT_EQ(part.scales.extent(1), 4);
  EXPECT_EQ(part.order.extent(0), 8);
}

TEST(Matrix, BlocksOfScalesAreCutAlongBothAxes) {
  Matrix matrix{.format = MatrixFormat::kFp8, .rows = 300, .columns = 200};
  matrix.values = Tensor::zeros({300, 200}, DType::kF8E4m3);
  matrix.scales = Tensor::zeros({3, 2}, DType::kF32);
  matrix.scale_rows = matrix.scale_columns = 128;
  matrix.check();
  const Matrix part = matrix.sliced(Slice::rows({128, 300})).sliced(Slice::columns({0, 128}));
  part.check();
  EXPECT_EQ(part.scales.shape(), (Shape{2, 1}));
  EXPECT_ERROR(matrix.sliced(Slice::rows({0, 100})), ErrorCode::kInvalid, "cuts are possible at multiples of 128");
}

TEST(Matrix, CopiesAreDenseAndOwned) {
  const Matrix part = int4(6, 512, 128).sliced(Slice::columns({128, 256})).copied();
  part.check();
  EXPECT_TRUE(part.values.is_contiguous());
  EXPECT_EQ(part.bytes(), 6 * 16 * 4 + 6 * 2U);
}

}  // namespace
}  // namespace yoke::tensor
