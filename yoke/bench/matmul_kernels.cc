#include "yoke/bench/matmul_kernels.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "yoke/bench/matmul_isa.h"

namespace yoke {
namespace {

constexpr std::size_t kRows = 4;
constexpr std::size_t kColumns = 16;

template <class Sum>
using Tile = std::array<std::array<Sum, kColumns>, kRows>;

// Plain loops in an order that compilers vectorize with whatever the baseline of the machine has.
void multiply_f32(const void* a_data, const void* b_data, std::size_t groups, void* tile) {
  const auto* a = static_cast<const float*>(a_data);
  const auto* b = static_cast<const float*>(b_data);
  Tile<float> sums{};
  for (std::size_t k = 0; k < groups; ++k, a += kRows, b += kColumns) {
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) sums[i][j] += a[i] * b[j];
    }
  }
  std::memcpy(tile, &sums, sizeof(sums));
}

float widen(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

void multiply_bf16(const void* a_data, const void* b_data, std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::uint16_t*>(a_data);
  const auto* b = static_cast<const std::uint16_t*>(b_data);
  Tile<float> sums{};
  for (std::size_t k = 0; k < groups; ++k, a += 2 * kRows, b += 2 * kColumns) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const float even = widen(a[2 * i]), odd = widen(a[2 * i + 1]);
      for (std::size_t j = 0; j < kColumns; ++j) sums[i][j] += even * widen(b[2 * j]) + odd * widen(b[2 * j + 1]);
    }
  }
  std::memcpy(tile, &sums, sizeof(sums));
}

void multiply_i8(const void* a_data, const void* b_data, std::size_t groups, void* tile) {
  const auto* a = static_cast<const std::uint8_t*>(a_data);
  const auto* b = static_cast<const std::int8_t*>(b_data);
  Tile<std::int32_t> sums{};
  for (std::size_t k = 0; k < groups; ++k, a += 4 * kRows, b += 4 * kColumns) {
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        for (std::size_t g = 0; g < 4; ++g) sums[i][j] += a[4 * i + g] * b[4 * j + g];
      }
    }
  }
  std::memcpy(tile, &sums, sizeof(sums));
}

std::vector<MatmulKernel> find_kernels() {
  std::vector<MatmulKernel> kernels = machine_kernels();
  const auto plain = [&](DType type, int group, auto multiply) {
    kernels.push_back({.name = "plain",
                       .type = type,
                       .rows = static_cast<int>(kRows),
                       .columns = static_cast<int>(kColumns),
                       .group = group,
                       .multiply = multiply});
  };
  plain(DType::kF32, 1, multiply_f32);
  plain(DType::kBf16, 2, multiply_bf16);
  plain(DType::kI8, 4, multiply_i8);
  return kernels;
}

}  // namespace

std::span<const MatmulKernel> matmul_kernels() {
  static const std::vector<MatmulKernel> kernels = find_kernels();
  return kernels;
}

}  // namespace yoke
