#include "yoke/bench/check_data.h"

#include <gtest/gtest.h>

#include <cstring>

namespace yoke::bench {
namespace {

double decode(tensor::DType type, const std::byte* at) {
  const auto get = [at](auto element) {
    std::memcpy(&element, at, sizeof(element));
    return element;
  };
  switch (type) {
    case tensor::DType::kBf16:
      return tensor::to_float(tensor::Bf16{get(std::uint16_t{})});
    case tensor::DType::kF16:
      return tensor::to_float(tensor::F16{get(std::uint16_t{})});
    case tensor::DType::kI8:
      return get(std::int8_t{});
    case tensor::DType::kI32:
      return get(std::int32_t{});
    default:
      return get(float{});
  }
}

void encode(tensor::DType type, double value, std::byte* at) {
  const auto put = [at](auto element) { std::memcpy(at, &element, sizeof(element)); };
  if (type == tensor::DType::kBf16) put(tensor::to_bf16(static_cast<float>(value)).bits);
  if (type == tensor::DType::kF16) put(tensor::to_f16(static_cast<float>(value)).bits);
  if (type == tensor::DType::kI8) put(static_cast<std::int8_t>(value));
  if (type == tensor::DType::kI32) put(static_cast<std::int32_t>(value));
  if (type == tensor::DType::kF32) put(static_cast<float>(value));
}

constexpr tensor::DType kTypes[] = {tensor::DType::kF32, tensor::DType::kBf16, tensor::DType::kF16, tensor::DType::kI8,
                                    tensor::DType::kI32};
constexpr comm::ReduceOp kOps[] = {comm::ReduceOp::kSum, comm::ReduceOp::kMax, comm::ReduceOp::kMin,
                                   comm::ReduceOp::kAvg};

// An obvious reduction over the inputs gives what the check expects, for every type and operation and up to more ranks
// than int8 could add.
TEST(CheckData, PredictsEveryReductionExactly) {
  constexpr std::size_t kCount = 517, kFirst = 13;
  for (const tensor::DType type : kTypes) {
    for (const comm::ReduceOp op : kOps) {
      for (const int ranks : {1, 2, 3, 8, 37, 300}) {
        const CheckData data(type, op, ranks, 7);
        const std::size_t element = tensor::size_of(type);
        std::vector<double> result(kCount);
        std::vector<std::byte> bytes(kCount * element + 1);
        std::byte* const at = bytes.data() + 1;  // misaligned
        for (int rank = 0; rank < ranks; ++rank) {
          data.fill_input(at, kFirst, kCount, rank);
          for (std::size_t i = 0; i < kCount; ++i) {
            const double value = decode(type, at + i * element);
            if (rank == 0) {
              result[i] = value;
            } else if (op == comm::ReduceOp::kMax) {
              result[i] = std::max(result[i], value);
            } else if (op == comm::ReduceOp::kMin) {
              result[i] = std::min(result[i], value);
            } else {
              result[i] += value;
            }
          }
        }
        for (std::size_t i = 0; i < kCount; ++i)
          encode(type, op == comm::ReduceOp::kAvg ? result[i] / ranks : result[i], at + i * element);
        EXPECT_EQ(data.count_wrong_result(at, kFirst, kCount), 0)
            << tensor::to_string(type) << " " << comm::to_string(op) << " " << ranks;
      }
    }
  }
}

TEST(CheckData, CountsEachWrongElement) {
  for (const tensor::DType type : kTypes) {
    const CheckData data(type, comm::ReduceOp::kSum, 2, 1);
    std::vector<std::byte> bytes(100 * tensor::size_of(type));
    data.fill_moved(bytes.data(), 0, 100, 3);
    EXPECT_EQ(data.count_wrong_moved(bytes.data(), 0, 100, 3), 0);
    bytes[0] ^= std::byte{1};
    bytes[99 * tensor::size_of(type)] ^= std::byte{1};
    EXPECT_EQ(data.count_wrong_moved(bytes.data(), 0, 100, 3), 2) << tensor::to_string(type);
    EXPECT_GT(data.count_wrong_moved(bytes.data(), 0, 100, 2), 90) << "another source is told apart";
    EXPECT_GT(data.count_wrong_moved(bytes.data(), 1, 99, 3), 90) << "a shift is seen";
    const CheckData next(type, comm::ReduceOp::kSum, 2, 2);
    EXPECT_GT(next.count_wrong_moved(bytes.data(), 0, 100, 3), 90) << "stale data of the round before";
  }
}

TEST(CheckData, AllowsTwoStepsForAveragesOfFloatsOnly) {
  const auto wrong_after = [](tensor::DType type, comm::ReduceOp op, std::uint32_t steps) {
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
  EXPECT_FALSE(wrong_after(tensor::DType::kF32, comm::ReduceOp::kAvg, 2));
  EXPECT_TRUE(wrong_after(tensor::DType::kF32, comm::ReduceOp::kAvg, 3));
  EXPECT_TRUE(wrong_after(tensor::DType::kF32, comm::ReduceOp::kSum, 1));
  EXPECT_TRUE(wrong_after(tensor::DType::kI32, comm::ReduceOp::kAvg, 1));
}

}  // namespace
}  // namespace yoke::bench
