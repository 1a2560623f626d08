// What this GPU can do, for comparison: how fast memory is read and copied, and how fast tensor cores multiply.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {

// Reads `count` pieces of 16 bytes, eight at a time; `to` is written only for one value that never comes.
extern "C" __global__ void yoke_read(const uint4* from, long long count, uint4* to) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  uint4 all = {};
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += 8 * stride) {
    uint4 values[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) values[j] = i + j * stride < count ? __ldcs(from + i + j * stride) : uint4{};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      all.x ^= values[j].x;
      all.y ^= values[j].y;
      all.z ^= values[j].z;
      all.w ^= values[j].w;
    }
  }
  if (all.x == 0x1234567 && all.y == 0x89abcdef && all.z == 1 && all.w == 2) *to = all;
}

extern "C" __global__ void yoke_copy(const uint4* from, long long count, uint4* to) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += 4 * stride) {
    uint4 values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = i + j * stride < count ? from[i + j * stride] : uint4{};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (i + j * stride < count) to[i + j * stride] = values[j];
    }
  }
}

// 8 independent products m16n8k16 in bf16 a round and warp, all from registers.
extern "C" __global__ void yoke_multiply_rate(int rounds, u32 seed, float* to) {
  const u32 a[4] = {seed + threadIdx.x, seed * 3, seed ^ threadIdx.x << 3, seed + 5};
  float sums[8][4] = {};
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
          "%2, %3};"
          : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[0] ^ i), "r"(a[1] + i));
    }
  }
  float all = 0;
  for (int i = 0; i < 8; ++i) all += sums[i][0] + sums[i][1] + sums[i][2] + sums[i][3];
  if (all == 12345.678F) to[0] = all;
}

}  // namespace yoke::ops::cuda
