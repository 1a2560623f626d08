#include "yoke/comm/reduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "yoke/base/rng_testing.h"

namespace yoke::comm {
namespace {

using Bytes = std::vector<std::byte>;

template <class Value>
Bytes bytes_of(const std::vector<Value>& values) {
  Bytes bytes(values.size() * sizeof(Value));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class Value>
std::vector<Value> values_of(const Bytes& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class Value>
std::vector<Value> reduced(const std::vector<std::vector<Value>>& inputs, tensor::DType type, ReduceOp op) {
  std::vector<Bytes> images;
  std::vector<const void*> pointers;
  for (const auto& input : inputs) images.push_back(bytes_of(input));
  for (const Bytes& image : images) pointers.push_back(image.data());
  Bytes out(images.front().size());
  reduce_into(out.data(), pointers, inputs.front().size(), type, op);
  return values_of<Value>(out);
}

// One rounding of the exact sum of f32 additions: what the header promises, told with doubles where they are exact.
std::uint16_t expected_rail(tensor::DType type, float value) {
  return type == tensor::DType::kF16 ? tensor::to_f16(value).bits : tensor::to_bf16(value).bits;
}
float widened(tensor::DType type, std::uint16_t bits) {
  return type == tensor::DType::kF16 ? tensor::to_float(tensor::F16{bits}) : tensor::to_float(tensor::Bf16{bits});
}

// With one input only the way through f32 and back is left, so this compares the two conversions for all 65536.
TEST(Reduce, KeepsEveryHalfPrecisionValue) {
  for (const tensor::DType type : {tensor::DType::kF16, tensor::DType::kBf16}) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const std::vector<std::uint16_t> result = reduced<std::uint16_t>({all}, type, ReduceOp::kSum);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float value = widened(type, all[i]);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(widened(type, result[i]))) << tensor::to_string(type) << " " << i;
      } else {
        ASSERT_EQ(result[i], all[i]) << tensor::to_string(type);
      }
    }
  }
}

// A sum of two rails is exact in a double, and a double that f32 holds exactly is rounded once.
TEST(Reduce, RoundsTheSumOfTwoHalvesAsADoubleDoes) {
  Random random(7);
  for (const tensor::DType type : {tensor::DType::kF16, tensor::DType::kBf16}) {
    std::vector<std::uint16_t> a(4099), b(a.size());
    for (auto* side : {&a, &b}) {
      for (auto& value : *side) value = static_cast<std::uint16_t>(random.word());
    }
    const auto sum = reduced<std::uint16_t>({a, b}, type, ReduceOp::kSum);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double exact = double{widened(type, a[i])} + double{widened(type, b[i])};
      if (std::isnan(exact)) continue;
      ASSERT_EQ(sum[i], expected_rail(type, static_cast<float>(exact)))
          << tensor::to_string(type) << " " << a[i] << " " << b[i];
    }
  }
}

TEST(Reduce, RoundsHalvesOnceAtTheEnd) {
  const auto sum =
      reduced<std::uint16_t>({{tensor::to_bf16(256).bits}, {tensor::to_bf16(1).bits}, {tensor::to_bf16(1).bits}},
                             tensor::DType::kBf16, ReduceOp::kSum);
  EXPECT_EQ(tensor::to_float(tensor::Bf16{sum[0]}), 258.0F);
  const auto average =
      reduced<std::uint16_t>({{tensor::to_f16(1).bits}, {tensor::to_f16(1).bits}, {tensor::to_f16(2).bits}},
                             tensor::DType::kF16, ReduceOp::kAvg);
  EXPECT_EQ(average[0], tensor::to_f16(4.0F / 3.0F).bits);
}

TEST(Reduce, AddsFloatsInTheOrderOfInputs) {
  EXPECT_EQ(reduced<float>({{0x1p25F}, {-0x1p25F}, {1}}, tensor::DType::kF32, ReduceOp::kSum)[0], 1.0F);
  EXPECT_EQ(reduced<float>({{1}, {0x1p25F}, {-0x1p25F}}, tensor::DType::kF32, ReduceOp::kSum)[0], 0.0F);
}

TEST(Reduce, MaximumAndMinimumAreNaNWhereAnyInputIs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    const auto result = reduced<float>({{nan, 1, 2, 3}, {1, nan, 1, 4}, {1, 1, nan, 5}}, tensor::DType::kF32, op);
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]) && std::isnan(result[2]));
    EXPECT_EQ(result[3], op == ReduceOp::kMax ? 5.0F : 3.0F);
  }
}

TEST(Reduce, IntegersWrapAndAveragesRoundTowardZero) {
  EXPECT_EQ(reduced<std::int8_t>({{100, -100}, {100, -100}}, tensor::DType::kI8, ReduceOp::kSum),
            (std::vector<std::int8_t>{-56, 56}));
  EXPECT_EQ(reduced<std::int8_t>({{100, -7}, {101, 2}}, tensor::DType::kI8, ReduceOp::kAvg),
            (std::vector<std::int8_t>{100, -2}));
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(reduced<std::int32_t>({{kMax, -7}, {1, 2}}, tensor::DType::kI32, ReduceOp::kSum),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -5}));
  EXPECT_EQ(reduced<std::int32_t>({{5, -7}, {2, 2}}, tensor::DType::kI32, ReduceOp::kAvg),
            (std::vector<std::int32_t>{3, -2}));
}

TEST(Reduce, NothingIsWrittenForACountOfZero) {
  float out = 5;
  const float in = 1;
  const void* inputs[] = {&in, &in};
  reduce_into(&out, inputs, 0, tensor::DType::kF32, ReduceOp::kSum);
  EXPECT_EQ(out, 5.0F);
}

// Whatever the number of inputs, the length, the alignment and the aliasing, each element is that of a plain loop.
RC_GTEST_PROP(Reduce, IsThePlainLoopWhereverTheBuffersLie, ()) {
  const auto op = *rc::gen::element(ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg);
  const auto count = *rc::gen::element<std::size_t>(0, 1, 7, 31, 1023, 1024, 1025, 3001);
  const auto ranks = *rc::gen::inRange<std::size_t>(1, 9);
  const auto offset = *rc::gen::inRange<std::size_t>(0, 5);
  const auto alias = *rc::gen::inRange<std::size_t>(0, ranks + 1);  // ranks: apart from all
  Random random(*rc::gen::arbitrary<std::uint64_t>());

  std::vector<Bytes> images(ranks + 1, Bytes(offset + count * 4 + 1));
  std::vector<float> expected(count);
  std::vector<const void*> inputs;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(random.normal());
      std::memcpy(&images[r][offset + i * 4], &value, 4);
      if (r == 0) expected[i] = value;
      if (r > 0 && op == ReduceOp::kMax) expected[i] = std::max(expected[i], value);
      if (r > 0 && op == ReduceOp::kMin) expected[i] = std::min(expected[i], value);
      if (r > 0 && (op == ReduceOp::kSum || op == ReduceOp::kAvg)) expected[i] += value;
    }
    inputs.push_back(images[r].data() + offset);
  }
  if (op == ReduceOp::kAvg) {
    for (float& value : expected) value /= static_cast<float>(ranks);
  }
  reduce_into(images[alias].data() + offset, inputs, count, tensor::DType::kF32, op);
  RC_ASSERT(std::equal(
      expected.begin(), expected.end(),
      values_of<float>({images[alias].begin() + static_cast<std::ptrdiff_t>(offset), images[alias].end() - 1})
          .begin()));
}

}  // namespace
}  // namespace yoke::comm
