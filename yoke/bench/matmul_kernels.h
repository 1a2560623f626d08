// Small matrix products, one tile of the result at a time, for every instruction set that is worth its own: what the
// machine's arithmetic can do at best. Data are packed so that a kernel reads both inputs in order:
//
//   a: for each group of k, `rows` rows of one group;  b: for each group of k, `columns` columns of one group
//   tile[i][j] = sum over k of a[i][k] * b[k][j], in f32, or in i32 for int8
//
// A group is what one instruction multiplies at once: 1 value of f32, 2 of bf16, 4 of int8 (a without sign, b with).
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "yoke/tensor/dtype.h"

namespace yoke {

struct MatmulKernel {
  std::string_view name;  // "avx512-vnni"
  DType type = DType::kF32;
  int rows = 1;
  int columns = 1;
  int group = 1;
  // `tile` is rows x columns, overwritten.
  void (*multiply)(const void* a, const void* b, std::size_t groups, void* tile) = nullptr;
};

// Those that this processor can run, best first within a type; the last of each type is plain C++.
std::span<const MatmulKernel> matmul_kernels();

}  // namespace yoke
