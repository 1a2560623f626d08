// Rung 2: activations as two planes of 8 bits, weights by bulk copies into a ring of each warp
#pragma once
#include "call.cuh"

namespace {

constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: its last bits count by one

__device__ __forceinline__ void barrier_init(u32 barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
}
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
  asm volatile(
      "{.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void bulk_copy(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ void multiply_add_int(int (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Activations of a slice: per block of 64 columns and tile of four rows 512 bytes, then per group and row scale and
// sum.
template <int WARPS>
__device__ void quantize(const Call& call, int slice, unsigned char* planes, float2* factors, int tiles) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = slice * call.slice_blocks;
  const int blocks = min(call.slice_blocks, call.blocks - first);
  const int groups = (blocks + 1) / 2;
  for (int unit = warp; unit < groups * tiles * 4; unit += WARPS) {
    const int row = unit / groups, group = unit % groups;
    const int column = first * 64 + group * 128 + 4 * lane;
    float4 x = {0, 0, 0, 0};
    if (row < call.rows && column < call.blocks * 64) {
      x = *reinterpret_cast<const float4*>(call.x + static_cast<long long>(row) * call.blocks * 64 + column);
    }
    u32 most = max(max(__float_as_uint(x.x) & 0x7fffffffU, __float_as_uint(x.y) & 0x7fffffffU),
                   max(__float_as_uint(x.z) & 0x7fffffffU, __float_as_uint(x.w) & 0x7fffffffU));
    most = __reduce_max_sync(0xffffffffU, most);
    const float limit = __uint_as_float(most);
    const float inverse = limit < 1e-30F ? 0 : 32639.0F / limit;
    const int q[4] = {__float2int_rn(x.x * inverse), __float2int_rn(x.z * inverse), __float2int_rn(x.y * inverse),
                      __float2int_rn(x.w * inverse)};
    u32 high = 0, low = 0;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = (q[i] + 128) >> 8;
      high |= static_cast<u32>(h & 255) << (8 * i);
      low |= static_cast<u32>((q[i] - 256 * h) & 255) << (8 * i);
      sum += q[i];
    }
    sum = __reduce_add_sync(0xffffffffU, sum);
    const int step = lane >> 2, t = lane & 3;
    const int block = group * 2 + step / 4;
    u32* const to = reinterpret_cast<u32*>(planes) + ((row / 4) * call.slice_blocks + block) * 128;
    const int n = row % 4 * 2;
    to[(n * 4 + t) * 4 + step % 4] = high;
    to[((n + 1) * 4 + t) * 4 + step % 4] = low;
    if (lane == 0)
      factors[(row / 4 * (call.slice_blocks / 2) + group) * 4 + row % 4] = {limit / 32639.0F, static_cast<float>(sum)};
  }
}

template <int WARPS, int TILES, int CHUNK>
__global__ void __launch_bounds__(WARPS * 32, 1) int_planes(const __grid_constant__ Call call) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStage = CHUNK * 512 + CHUNK / 2 * 32;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int stages = call.stages;
  unsigned char* const ring = shared + warp * stages * kStage;
  unsigned char* const planes = shared + WARPS * stages * kStage;
  float2* const factors = reinterpret_cast<float2*>(planes + TILES * call.slice_blocks * 512);
  const u32 barriers = shared_address(factors + TILES * (call.slice_blocks / 2) * 4) + warp * stages * 8;
  const u32 ring_address = shared_address(ring);
  const int units = call.panels * call.slices;
  const int first = static_cast<int>(static_cast<long long>(units) * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(static_cast<long long>(units) * (blockIdx.x + 1) / gridDim.x);
  if (lane == 0) {
    for (int i = 0; i < stages; ++i) barrier_init(barriers + 8 * i);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
  // The producer's place.
  int ahead_unit = first + warp, ahead_block = 0, fill_stage = 0;
  const int groups = (call.blocks + 1) / 2;
  const auto fill = [&] {
    if (ahead_unit >= end) return;
    const int slice = ahead_unit / call.panels, panel = ahead_unit - slice * call.panels;
    const int length = min(call.slice_blocks, call.blocks - slice * call.slice_blocks);
    const int block = slice * call.slice_blocks + ahead_block;
    const int count = min(CHUNK, length - ahead_block);
    if (lane == 0) {
      const u32 barrier = barriers + 8 * fill_stage, to = ring_address + fill_stage * kStage;
      const u32 bytes = count * 512, scale_bytes = (count + 1) / 2 * 32;
      barrier_expect(barrier, bytes + scale_bytes);
      bulk_copy(to, call.values + (static_cast<long long>(panel) * call.blocks + block) * 512, bytes, barrier);
      bulk_copy(to + CHUNK * 512, call.scales + (static_cast<long long>(panel) * groups + block / 2) * 32, scale_bytes,
                barrier);
    }
    fill_stage = fill_stage + 1 == stages ? 0 : fill_stage + 1;
    ahead_block += CHUNK;
    if (ahead_block >= length) {
      ahead_block = 0;
      ahead_unit += WARPS;
    }
  };
  for (int i = 0; i < stages; ++i) fill();
  wait_for_previous();
  int unit = first + warp, stage = 0;
  u32 parity = 0;
  const int g = lane >> 2, t = lane & 3;
  for (int slice = first / call.panels; slice * call.panels < end; ++slice) {
    __syncthreads();
    quantize<WARPS>(call, slice, planes, factors, TILES);
    __syncthreads();
    const int slice_end = min(end, (slice + 1) * call.panels);
    const int length = min(call.slice_blocks, call.blocks - slice * call.slice_blocks);
    for (; unit < slice_end; unit += WARPS) {
      const int panel = unit - slice * call.panels;
      float sums[TILES][2] = {};
      int dots[TILES][4];
      for (int block = 0; block < length; block += CHUNK) {
        barrier_wait(barriers + 8 * stage, parity);
        const unsigned char* const held = ring + stage * kStage;
#pragma unroll
        for (int i = 0; i < CHUNK; ++i) {
          if (block + i >= length) break;
          const uint4 words = *reinterpret_cast<const uint4*>(held + i * 512 + lane * 16);
          const u32 low[4] = {words.x & 0x0f0f0f0fU, words.y & 0x0f0f0f0fU, words.z & 0x0f0f0f0fU,
                              words.w & 0x0f0f0f0fU};
          const u32 high[4] = {words.x >> 4 & 0x0f0f0f0fU, words.y >> 4 & 0x0f0f0f0fU, words.z >> 4 & 0x0f0f0f0fU,
                               words.w >> 4 & 0x0f0f0f0fU};
#pragma unroll
          for (int n = 0; n < TILES; ++n) {
            if (i % 2 == 0) dots[n][0] = dots[n][1] = dots[n][2] = dots[n][3] = 0x4b400000;
            const uint4 x =
                *reinterpret_cast<const uint4*>(planes + (n * call.slice_blocks + block + i) * 512 + lane * 16);
            multiply_add_int(dots[n], low[0], high[0], low[1], high[1], x.x, x.y);
            multiply_add_int(dots[n], low[2], high[2], low[3], high[3], x.z, x.w);
          }
          if (i % 2 == 1 || block + i + 1 == length) {
            const u32 pair = *reinterpret_cast<const u32*>(held + CHUNK * 512 + i / 2 * 32 + g * 4);
            const float2 scale = {low_of(pair), high_of(pair)};
#pragma unroll
            for (int n = 0; n < TILES; ++n) {
              const float2 factor = factors[(n * (call.slice_blocks / 2) + (block + i) / 2) * 4 + t];
#pragma unroll
              for (int j = 0; j < 2; ++j) {
                const float whole =
                    fmaf(__int_as_float(dots[n][2 * j]) - kMagic, 256.0F, __int_as_float(dots[n][2 * j + 1]) - kMagic);
                sums[n][j] = fmaf((j == 0 ? scale.x : scale.y) * factor.x, fmaf(-8.0F, factor.y, whole), sums[n][j]);
              }
            }
          }
        }
        __syncwarp();
        fill();
        if (++stage == stages) {
          stage = 0;
          parity ^= 1;
        }
      }
      float* const to = call.partials + (static_cast<long long>(panel) * call.slices + slice) * call.rows * 16;
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const int row = n * 4 + t;
        if (row < call.rows) {
          __stcg(to + row * 16 + g, sums[n][0]);
          __stcg(to + row * 16 + g + 8, sums[n][1]);
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
}

}  // namespace
