// What the rungs are called with: weights in the layout of yoke/ops/cuda/layout.h, groups of 128 columns, bf16 scales.
#pragma once
#include "yoke/ops/cuda/fragments.cuh"

namespace {

using namespace yoke::ops::cuda;

struct Call {
  const unsigned char* values;
  const unsigned char* scales;
  const float* x;
  float* y;
  float* partials;
  unsigned* counters;
  int rows, panels, blocks, slice_blocks, slices, stages;
};

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

}  // namespace
