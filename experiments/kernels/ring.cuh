// Rung 3: activations in f16 scaled by a power of two for each 128 columns, weights as 1024 + u; a ring of
// cp.async that each lane fills for itself, so that nothing is waited for but its own copies
#pragma once
#include "call.cuh"

namespace {

__device__ __forceinline__ void copy16(u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy4(u32 to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ uint4 read16(u32 from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ u32 read4(u32 from) {
  u32 v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
  return v;
}
template <u32 MASK>
__device__ __forceinline__ u32 weights_of(u32 word) {
  u32 pair;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(pair) : "r"(word), "n"(MASK), "r"(0x64006400U));
  return pair;
}
__device__ __forceinline__ void multiply_add_f16(float (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

constexpr int kPad = 64;  // bytes behind a row of activations: two rows then lie in other banks

template <int WARPS>
__device__ void scale_activations(const Call& call, int slice, int padded_rows, unsigned char* x, int stride,
                                  float2* factors) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = slice * call.slice_blocks, groups = call.slice_blocks / 2;
  const int columns = call.blocks * 64;
#pragma unroll 2
  for (int unit = warp; unit < groups * call.rows; unit += WARPS) {
    const int row = unit / groups, group = unit - row * groups;
    const int column = first * 64 + group * 128 + 4 * lane;
    float4 v = {0, 0, 0, 0};
    if (column < columns) v = *reinterpret_cast<const float4*>(call.x + static_cast<long long>(row) * columns + column);
    u32 most = max(max(__float_as_uint(v.x) & 0x7fffffffU, __float_as_uint(v.y) & 0x7fffffffU),
                   max(__float_as_uint(v.z) & 0x7fffffffU, __float_as_uint(v.w) & 0x7fffffffU));
    most = __reduce_max_sync(0xffffffffU, most);
    // 2^e >= the largest; scaled numbers are at most 256.
    const u32 exponent = most >> 23;
    const bool is_small = exponent < 16, is_bad = exponent == 255;
    const float factor = is_bad     ? __uint_as_float(0x7fc00000U)
                         : is_small ? 0.0F
                                    : __uint_as_float((exponent - 7) << 23);
    const float inverse = is_bad || is_small ? 0.0F : __uint_as_float((261 - exponent) << 23);
    const u32 low = pack_f16(v.x * inverse, v.y * inverse), high = pack_f16(v.z * inverse, v.w * inverse);
    float sum = (f16_to_float(low & 0xffffU) + f16_to_float(low >> 16)) +
                (f16_to_float(high & 0xffffU) + f16_to_float(high >> 16));
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    const int step = lane >> 2, t = lane & 3;
    *reinterpret_cast<uint2*>(x + row * stride + group * 256 + step / 2 * 64 + t * 16 + step % 2 * 8) = {low, high};
    if (lane == 0) factors[group * padded_rows + row] = {factor, sum};
  }
}

template <int WARPS, int TILES, int CHUNK, int STAGES, int BLOCKS>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) f16_ring(const __grid_constant__ Call call) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStage = CHUNK * 512 + CHUNK / 2 * 128;
  constexpr int kRows = TILES * 8;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int g = lane >> 2, t = lane & 3;
  const int stride = call.slice_blocks * 128 + kPad;
  unsigned char* const x = shared + WARPS * STAGES * kStage;
  unsigned char* const zeros = x + call.rows * stride;
  float2* const factors = reinterpret_cast<float2*>(zeros + CHUNK * 128);
  const u32 ring = shared_address(shared) + warp * STAGES * kStage;
  const int units = call.panels * call.slices;
  const int first = static_cast<int>(static_cast<long long>(units) * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(static_cast<long long>(units) * (blockIdx.x + 1) / gridDim.x);
  const int groups = (call.blocks + 1) / 2;
  const int first_slice = first / call.panels;
  struct {
    int unit = 0, slice = 0, panel = 0, block = 0, last = 0, stage = 0;
    const unsigned char* values = nullptr;
    const unsigned char* scales = nullptr;
  } ahead;
  const auto find_unit = [&] {
    ahead.block = ahead.slice * call.slice_blocks;
    ahead.last = min(ahead.block + call.slice_blocks, call.blocks);
    ahead.values = call.values + static_cast<long long>(ahead.panel) * call.blocks * 512 + lane * 16;
    ahead.scales = call.scales + static_cast<long long>(ahead.panel) * groups * 32 + g * 4;
  };
  ahead.unit = first + warp;
  ahead.slice = ahead.unit / call.panels;
  ahead.panel = ahead.unit - ahead.slice * call.panels;
  ahead.stage = 0;
  find_unit();
  const auto fill = [&] {
    if (ahead.unit < end) {
      const u32 to = ring + ahead.stage * kStage;
#pragma unroll
      for (int i = 0; i < CHUNK; ++i) {
        copy16(to + i * 512 + lane * 16, ahead.values + static_cast<u32>(min(ahead.block + i, ahead.last - 1)) * 512U);
      }
#pragma unroll
      for (int i = 0; i < CHUNK / 2; ++i) {
        copy4(to + CHUNK * 512 + i * 128 + lane * 4,
              ahead.scales + static_cast<u32>(min(ahead.block / 2 + i, groups - 1)) * 32U);
      }
      ahead.block += CHUNK;
      if (ahead.block >= ahead.last) {
        ahead.unit += WARPS;
        ahead.panel += WARPS;
        while (ahead.panel >= call.panels) {
          ahead.panel -= call.panels;
          ++ahead.slice;
        }
        find_unit();
      }
    }
    ahead.stage = ahead.stage + 1 == STAGES ? 0 : ahead.stage + 1;
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) fill();
  wait_for_previous();
  for (int i = threadIdx.x; i < CHUNK * 128 / 4; i += WARPS * 32) reinterpret_cast<u32*>(zeros)[i] = 0;
  for (int i = threadIdx.x; i < call.slice_blocks / 2 * kRows; i += WARPS * 32) factors[i] = {0, 0};
  u32 x_address[TILES], x_step[TILES];
#pragma unroll
  for (int n = 0; n < TILES; ++n) {
    const int row = n * 8 + g;
    x_step[n] = row < call.rows ? CHUNK * 128 : 0;
  }
  int unit = first + warp, stage = 0;
  for (int slice = first_slice; slice * call.panels < end; ++slice) {
    __syncthreads();
    scale_activations<WARPS>(call, slice, kRows, x, stride, factors);
    __syncthreads();
    const int slice_end = min(end, (slice + 1) * call.panels);
    const int length = min(call.slice_blocks, call.blocks - slice * call.slice_blocks);
    for (; unit < slice_end; unit += WARPS) {
      const int panel = unit - slice * call.panels;
      float sums[TILES][4] = {};
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const int row = n * 8 + g;
        x_address[n] = shared_address(row < call.rows ? x + row * stride : zeros) + t * 16;
      }
      const float4* factor_at = reinterpret_cast<const float4*>(factors) + t;
      for (int block = 0; block < length; block += CHUNK) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        fill();
        const u32 held = ring + stage * kStage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
        for (int pair = 0; pair < CHUNK / 4; ++pair) {
          float dots[2][TILES][4] = {};
#pragma unroll
          for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int which = 0; which < 2; ++which) {  // blocks of both groups in turns: two chains of products
              const int i = pair * 4 + which * 2 + half;
              const uint4 words = read16(held + i * 512 + lane * 16);
              const u32 each[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
              for (int j = 0; j < 2; ++j) {
                uint4 b[TILES];
#pragma unroll
                for (int n = 0; n < TILES; ++n) b[n] = read16(x_address[n] + i * 128 + j * 64);
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                  const u32 word = each[2 * j + s];
                  const u32 a0 = weights_of<0x000f000f>(word), a1 = weights_of<0x00f000f0>(word);
                  const u32 a2 = weights_of<0x000f000f>(word >> 8), a3 = weights_of<0x00f000f0>(word >> 8);
#pragma unroll
                  for (int n = 0; n < TILES; ++n) {
                    multiply_add_f16(dots[which][n], a0, a1, a2, a3, s == 0 ? b[n].x : b[n].z,
                                     s == 0 ? b[n].y : b[n].w);
                  }
                }
              }
            }
          }
#pragma unroll
          for (int which = 0; which < 2; ++which) {
            const int group = pair * 2 + which;
            const u32 stored = read4(held + CHUNK * 512 + group * 128 + lane * 4);
            const float first_scale = low_of(stored), second_scale = high_of(stored) * 0.0625F;
#pragma unroll
            for (int n = 0; n < TILES; ++n) {
              const float4 f = factor_at[(group * kRows + n * 8) / 2];
              sums[n][0] = fmaf(first_scale * f.x, fmaf(-1032.0F, f.y, dots[which][n][0]), sums[n][0]);
              sums[n][1] = fmaf(first_scale * f.z, fmaf(-1032.0F, f.w, dots[which][n][1]), sums[n][1]);
              sums[n][2] = fmaf(second_scale * f.x, fmaf(-1152.0F, f.y, dots[which][n][2]), sums[n][2]);
              sums[n][3] = fmaf(second_scale * f.z, fmaf(-1152.0F, f.w, dots[which][n][3]), sums[n][3]);
            }
          }
        }
#pragma unroll
        for (int n = 0; n < TILES; ++n) x_address[n] += x_step[n];
        factor_at += CHUNK / 2 * kRows / 2;
      }
      float* const to = call.partials + (static_cast<long long>(panel) * call.slices + slice) * call.rows * 16;
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = n * 8 + t * 2 + (i & 1);
          if (row < call.rows) __stcg(to + row * 16 + g + 8 * (i >> 1), sums[n][i]);
        }
      }
      __syncwarp();
      unsigned before = 0;
      if (lane == 0) {
        __threadfence();
        before = atomicInc(call.counters + panel, call.slices - 1);
        __threadfence();
      }
      before = __shfl_sync(0xffffffffU, before, 0);
      if (before == call.slices - 1) {
        for (int i = lane; i < call.rows * 16; i += 32) {
          const float* const from = call.partials + static_cast<long long>(panel) * call.slices * call.rows * 16 + i;
          float sum = __ldcg(from);
#pragma unroll 4
          for (int s = 1; s < call.slices; ++s) sum += __ldcg(from + s * call.rows * 16);
          call.y[static_cast<long long>(i / 16) * call.panels * 16 + panel * 16 + i % 16] = sum;
        }
      }
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace
