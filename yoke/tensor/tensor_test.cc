#include "yoke/tensor/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "yoke/base/error.h"
#include "yoke/base/error_testing.h"

namespace yoke::tensor {
namespace {

Tensor counting(Shape shape) {
  Tensor tensor = Tensor::empty(shape, DType::kI32);
  std::iota(tensor.mutable_data<std::int32_t>(), tensor.mutable_data<std::int32_t>() + tensor.count(), 0);
  return tensor;
}

TEST(Shape, CountsElementsAndPrints) {
  EXPECT_EQ(Shape{}.count(), 1) << "no axes is one element";
  EXPECT_EQ((Shape{0, 7}).count(), 0);
  EXPECT_EQ((Shape{2, 3, 5}).count(), 30);
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
}

TEST(Shape, AProductThatDoesNotFitIsNoCount) {
  EXPECT_EQ(checked_count(std::vector<std::int64_t>{1LL << 31, 1LL << 31}), 1LL << 62);
  EXPECT_EQ(checked_count(std::vector<std::int64_t>{1LL << 32, 1LL << 32}), std::nullopt);
  EXPECT_EQ(checked_count(std::vector<std::int64_t>{1LL << 32, 1LL << 32, 0}), 0);
  EXPECT_EQ(checked_count(std::vector<std::int64_t>{-1}), std::nullopt);
}

TEST(Storage, OwnedBytesAreAlignedAndAbsurdSizesAreAnError) {
  for (const std::size_t size : {0, 1, 63, 64, 65, 4097}) {
    const Storage storage = Storage::allocate(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data()) % kStorageAlignment, 0U);
    EXPECT_EQ(storage.size(), size);
  }
  EXPECT_ERROR(Storage::allocate(SIZE_MAX), ErrorCode::kExhausted, "no memory for 18446744073709551615 bytes");
  EXPECT_ERROR(Storage::allocate(SIZE_MAX / 2), ErrorCode::kExhausted, "no memory for 9223372036854775807 bytes");
}

TEST(Storage, LivesAsLongAsItsLastView) {
  Tensor row;
  {
    const Tensor whole = counting({3, 4});
    row = whole.slice(0, {1, 2});
  }
  EXPECT_EQ(row.data<std::int32_t>()[3], 7);
}

TEST(StorageDeathTest, MappedBytesCannotBeWritten) {
  static const std::array<std::byte, 4> bytes{};
  const Tensor tensor(Storage::mapped(bytes, nullptr), {4}, DType::kU8);
  EXPECT_DEATH(tensor.mutable_data<std::uint8_t>(), "read-only");
}

TEST(Tensor, RowAndColumnSlicesAreViewsOfTheSameElements) {
  const Tensor whole = counting({5, 7});
  const Tensor part = whole.slice(0, {1, 4}).slice(1, {2, 7});
  EXPECT_EQ(part.shape(), (Shape{3, 5}));
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_EQ(part.row<std::int32_t>(2)[1], 3 * 7 + 3);
  part.mutable_row<std::int32_t>(0)[0] = -1;
  EXPECT_EQ(whole.data<std::int32_t>()[7 + 2], -1);
  EXPECT_EQ(whole.slice(1, {3, 3}).count(), 0);
}

TEST(Tensor, CopiesOfStridedViewsAreContiguous) {
  const Tensor whole = counting({3, 4});
  const Tensor columns = whole.slice(1, {1, 3}).copied();
  ASSERT_TRUE(columns.is_contiguous());
  EXPECT_EQ(std::vector<std::int32_t>(columns.span<std::int32_t>().begin(), columns.span<std::int32_t>().end()),
            (std::vector<std::int32_t>{1, 2, 5, 6, 9, 10}));
  const Tensor turned = whole.transposed().copied();
  EXPECT_EQ(turned.shape(), (Shape{4, 3}));
  EXPECT_EQ(turned.row<std::int32_t>(1)[2], 9);
  EXPECT_EQ(Tensor().copied().count(), 0);
}

TEST(Tensor, NothingMayHaveAnAbsurdShape) {
  const std::int64_t huge = std::int64_t{1} << 62;
  const Tensor nothing(Storage(), {0, huge, huge}, DType::kF64);
  EXPECT_TRUE(nothing.is_contiguous());
  EXPECT_EQ(nothing.slice(1, {5, huge}).copied().bytes(), 0U);
}

TEST(Shape, DivisionRoundsUpWithoutOverflow) {
  EXPECT_EQ(ceil_divide(0, 8), 0);
  EXPECT_EQ(ceil_divide(16, 8), 2);
  EXPECT_EQ(ceil_divide(17, 8), 3);
  EXPECT_EQ(ceil_divide(3, INT64_MAX), 1);
}

TEST(Tensor, ReshapesWithoutCopying) {
  const Tensor whole = counting({2, 6});
  EXPECT_EQ(whole.reshaped({3, 4}).row<std::int32_t>(2)[3], 11);
  EXPECT_EQ(whole.reshaped({3, 4}).raw(), whole.raw());
}

TEST(TensorDeathTest, WrongUseIsABug) {
  const Tensor whole = counting({3, 4});
  EXPECT_DEATH(whole.data<float>(), "holds i32, not f32");
  EXPECT_DEATH(whole.slice(0, {2, 4}), "2 to 4 of axis 0");
  EXPECT_DEATH(whole.transposed().reshaped({12}), "as");
  EXPECT_DEATH(Tensor(Storage::allocate(8), {2}, DType::kF32, 1), "bytes");
}

TEST(Tensor, MisalignedElementsCanBeCopiedButNotReadInPlace) {
  const Tensor bytes = counting({4});
  const Tensor misaligned(bytes.storage(), {2}, DType::kI32, 2);
  EXPECT_FALSE(misaligned.is_aligned());
  EXPECT_EQ(misaligned.copied().data<std::int32_t>()[0], 1 << 16);
  EXPECT_DEATH(misaligned.data<std::int32_t>(), "not aligned");
}

}  // namespace
}  // namespace yoke::tensor
