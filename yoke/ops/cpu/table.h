// The table of one instruction set, from the loops over its vectors.
#pragma once
#include "yoke/ops/cpu/attention_loops.h"
#include "yoke/ops/cpu/linear_loops.h"
#include "yoke/ops/cpu/row_loops.h"
#include "yoke/ops/cpu/select_loops.h"

namespace yoke::ops::cpu {
namespace {

template <class Lanes>
constexpr Kernels table_of(const char* name, MultiplyPanel multiply_bf16 = nullptr) {
  return {.name = name,
          .multiply_f32 = multiply_f32<Lanes>,
          .multiply_i8 = multiply_i8<Lanes>,
          .multiply_bf16 = multiply_bf16,
          .quantize = quantize<Lanes>,
          .to_bf16 = to_bf16<Lanes>,
          .add_and_square = add_and_square<Lanes>,
          .scale_row = scale_row<Lanes>,
          .swiglu = swiglu<Lanes>,
          .attend = attend<Lanes>,
          .block_maxima = block_maxima<Lanes>,
          .not_below = not_below<Lanes>,
          .sum_of_exponentials = sum_of_exponentials<Lanes>,
          .read = read_all<Lanes, true>,
          .read_plainly = read_all<Lanes, false>};
}

}  // namespace
}  // namespace yoke::ops::cpu
