#include "yoke/bench/check_data.h"

#include <gtest/gtest.h>

#include <cstring>

namespace yoke {
namespace {

double decode(DType type, const std::byte* at) {
  const auto get = [at](auto element) {
    std::memcpy(&element, at, sizeof(element));
    return element;
  };
  switch (type) {
    case DType::kBf16:
      return to_float(Bf16{get(std::uint16_t{})});
    case DType::kF16:
      return to_float(F16{get(std::uint16_t{})});
    case DType::kI8:
      return get(std::int8_t{});
    case DType::kI32:
      return get(std::int32_t{});
    default:
      return get(float{});
  }
}

void encode(DType type, double value, std::byte* at) {
  const auto put = [at](auto element) { std::memcpy(at, &element, sizeof(element)); };
  if (type == DType::kBf16) put(to_bf16(static_cast<float>(value)).bits);
  if (type == DType::kF16) put(to_f16(static_cast<float>(value)).bits);
  if (type == DType::kI8) put(static_cast<std::int8_t>(value));
  if (type == DType::kI32) put(static_cast<std::int32_t>(value));
  if (type == DType::kF32) put(static_cast<float>(value));
}

constexpr DType kTypes[] = {DType::kF32, DType::kBf16, DType::kF16, DType::kI8, DType::kI32};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAvg};

// An obvious reduction over the inputs gives what the check expects, for every type and operation and up to more ranks
// than int8 could add.
TEST(CheckData, PredictsEveryReductionExactly) {
  constexpr std::size_t kCount = 517, kFirst = 13;
  for (const DType type : kTypes) {
    for (const ReduceOp op : kOps) {
      for (const int ranks : {1, 2, 3, 8, 37, 300}) {
        const CheckData data(type, op, ranks, 7);
        const std::size_t element = size_of(type);
        std::vector<double> result(kCount);
        std::vector<std::byte> bytes(kCount * element + 1);
        std::byte* const at = bytes.data() + 1;  // misaligned
        for (int rank = 0; rank < ranks; ++rank) {
          data.fill_input(at, kFirst, kCount, rank);
          for (std::size_t i = 0; i < kCount; ++i) {
            const double value = decode(type, at + i * element);
            if (rank == 0) {
              result[i] = value;
            } else if (op == ReduceOp::kMax) {
              result[i] = std::max(result[i], value);
            } else if (op == ReduceOp::kMin) {
              result[i] = std::min(result[i], value);
            } else {
              result[i] += value;
            }
          }
        }
        for (std::size_t i = 0; i < kCount; ++i)
          encode(type, op == ReduceOp::kAvg ? result[i] / ranks : result[i], at + i * element);
        EXPECT_EQ(data.count_wrong_result(at, kFirst, kCount), 0)
            << to_string(type) << " " << to_string(op) << " " << ranks;
      }
    }
  }
}

TEST(CheckData, CountsEachWrongElement) {
  for (const DType type : kTypes) {
    const CheckData data(type, ReduceOp::kSum, 2, 1);
    std::vector<std::byte> bytes(100 * size_of(type));
    data.fill_moved(bytes.data(), 0, 100, 3);
    EXPECT_EQ(data.count_wrong_moved(bytes.data(), 0, 100, 3), 0);
    bytes[0] ^= std::byte{1};
    bytes[99 * size_of(type)] ^= std::byte{1};
    EXPECT_EQ(data.count_wrong_moved(bytes.data(), 0, 100, 3), 2) << to_string(type);
    EXPECT_GT(data.count_wrong_moved(bytes.data(), 0, 100, 2), 90) << "another source is told apart";
    EXPECT_GT(data.count_wrong_moved(bytes.data(), 1, 99, 3), 90) << "a shift is seen";
    const CheckData next(type, ReduceOp::kSum, 2, 2);
    EXPECT_GT(next.count_wrong_moved(bytes.data(), 0, 100, 3), 90) << "stale data of the round before";
  }
}

TEST(CheckData, AllowsTwoStepsForAveragesOfFloatsOnly) {
  const auto wrong_after = [](DType type, ReduceOp op, std::uint32_t steps) {
    const CheckData data(type, op, 1, 1);  // of one rank the result is its input
    std::vector<std::uint32_t> values(64);
    data.fill_input(values.data(), 0, 64, 0);
    std::int64_t nonzero = 0;
    for (auto& value : values) {
      if ((value & 0x7fffffffU) == 0) continue;
      value += steps;
      ++nonzero;
    }
    EXPECT_GT(nonzero, 0);
    return data.count_wrong_result(values.data(), 0, 64) == nonzero;
  };
  EXPECT_FALSE(wrong_after(DType::kF32, ReduceOp::kAvg, 2));
  EXPECT_TRUE(wrong_after(DType::kF32, ReduceOp::kAvg, 3));
  EXPECT_TRUE(wrong_after(DType::kF32, ReduceOp::kSum, 1));
  EXPECT_TRUE(wrong_after(DType::kI32, ReduceOp::kAvg, 1));
}

}  // namespace
}  // namespace yoke
