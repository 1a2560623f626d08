// Weights times a few rows of activations on the tensor cores, as fast as weights can be read.
//
// Every warp takes units of work: a slice of the columns of a panel of 16 rows. Weights come straight into registers,
// eight loads of 16 bytes a lane ahead of their use, also across the border of two units; activations are rounded to
// bf16 into shared memory once a slice. Sums are taken within a group of at most 128 columns by the tensor cores, then
// in f32 over the slice, and slices are added in ascending order by the warp that finishes a panel last. How a row is
// cut into slices depends on the matrix alone, and each row of activations is a column of its own in every product: so
// its result does not depend on the others.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kRowPadding = 16;  // elements: rows of activations then lie in other banks

__device__ __forceinline__ uint4 load_once(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

__device__ __forceinline__ void multiply_add(float (&sums)[4], const u32 (&a)[4], uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

__device__ __forceinline__ float silu(float x) { return x / (1 + expf(-x)); }

// Reads that stay where they are written: weights are on their way long before they are used.
__device__ __forceinline__ u32 load_word(const unsigned char* from) {
  u32 value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(from));
  return value;
}
__device__ __forceinline__ u32 load_half(const unsigned char* from) {
  u32 value;
  asm volatile("{.reg .u16 h; ld.global.nc.u16 h, [%1]; cvt.u32.u16 %0, h;}" : "=r"(value) : "l"(from));
  return value;
}
// Without a branch, which would wait for the word.
__device__ __forceinline__ void load_word_if(bool wanted, const unsigned char* from, u32& value) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.u32 %0, [%1];}"
               : "+r"(value)
               : "l"(from), "r"(static_cast<u32>(wanted)));
}

// A block of a panel as it is stored, with its scales and zeros: one of each, or one for each step.
template <int KIND>
constexpr bool has_scales() {
  return KIND == kInt4 || KIND == kNvfp4 || KIND == kInt8 || KIND == kFp8;
}
// What a warp loads at once, so that it waits for it as a whole: the hardware tells only six loads apart. Of two such
// tiles one is on its way while the other is used.
template <int KIND, bool GROUPS_OF_128>
struct Tile {
  static constexpr int kBlocks = block_pieces(KIND) >= 4 ? 1 : (GROUPS_OF_128 ? 4 : 2) / block_pieces(KIND);
  static constexpr int kPieces = block_pieces(KIND);
  static constexpr int kGroups = !has_scales<KIND>() ? 1 : GROUPS_OF_128 ? (kBlocks + 1) / 2 : kBlocks * kBlockSteps;
  uint4 pieces[kBlocks * kPieces];
  u32 scale[kGroups][2];
  u32 zero[kGroups];
};

// A unit of work: a slice of a panel. Units are ordered by slices: all panels of a slice, then the next slice; each
// block of threads has a range of them.
struct Unit {
  int number, panel;
  int block, last;              // of the slice: blocks [block, last)
  const uint4* weights;         // this lane's, of the first block
  const unsigned char* scales;  // this lane's, of the panel
  const unsigned char* zeros;

  __device__ __forceinline__ void find(const PackedMatrix& m, int pieces, int u, int lane) {
    number = u;
    const int slice = u / m.panel_count;
    panel = u - slice * m.panel_count;
    block = slice * m.slice_blocks;
    last = min(block + m.slice_blocks, m.blocks);
    weights = reinterpret_cast<const uint4*>(m.values) +
              (static_cast<long long>(panel) * m.blocks + block) * (pieces * 32) + lane;
    const long long rows = static_cast<long long>(panel) * m.groups * 8 + (lane >> 2);
    scales = m.scales + rows * m.scale_pair;
    zeros = reinterpret_cast<const unsigned char*>(m.zeros) + rows * 4;
  }
};

// The blocks of a unit from `first` on; where there are fewer, the last one again.
template <int KIND, bool GROUPS_OF_128>
__device__ __forceinline__ void load_tile(const PackedMatrix& m, const Unit& unit, int first,
                                          Tile<KIND, GROUPS_OF_128>& tile) {
  if (first >= unit.last) return;
#pragma unroll
  for (int i = 0; i < tile.kBlocks; ++i) {
    const uint4* const from = unit.weights + (min(first + i, unit.last - 1) - unit.block) * (tile.kPieces * 32);
#pragma unroll
    for (int p = 0; p < tile.kPieces; ++p) tile.pieces[i * tile.kPieces + p] = load_once(from + p * 32);
  }
  if constexpr (has_scales<KIND>()) {
    constexpr int kSteps = GROUPS_OF_128 ? 2 * kBlockSteps : 1;  // that share a scale
#pragma unroll
    for (int i = 0; i < tile.kGroups; ++i) {
      const int group = min(group_of(m, first * kBlockSteps + i * kSteps), m.groups - 1);
      const unsigned char* const scale = unit.scales + group * 8 * m.scale_pair;
      if constexpr (KIND == kNvfp4) {
        tile.scale[i][0] = load_half(scale);
      } else {
        tile.scale[i][0] = load_word(scale);
        load_word_if(m.scale_kind == kF32Scale, scale + 4, tile.scale[i][1]);
      }
      if constexpr (KIND == kInt4 || KIND == kInt8) {
        tile.zero[i] = default_zero(KIND) * 0x10001U;
        load_word_if(m.zeros != nullptr, unit.zeros + group * 32, tile.zero[i]);
      }
    }
  }
}

template <int TILES>
__device__ __forceinline__ void add_scaled(float (&slice)[TILES][4], float (&group)[TILES][4], float2 scale) {
#pragma unroll
  for (int n = 0; n < TILES; ++n) {
    slice[n][0] = fmaf(scale.x, group[n][0], slice[n][0]);
    slice[n][1] = fmaf(scale.x, group[n][1], slice[n][1]);
    slice[n][2] = fmaf(scale.y, group[n][2], slice[n][2]);
    slice[n][3] = fmaf(scale.y, group[n][3], slice[n][3]);
    group[n][0] = group[n][1] = group[n][2] = group[n][3] = 0;
  }
}

// The sums of one panel for TILES * 8 rows of activations, a lane's part as the tensor cores have it.
template <int TILES>
struct Sums {
  float group[TILES][4], slice[TILES][4];
};

// A tile that begins with block `first` of a row; `count` blocks of the slice are left.
template <int KIND, int TILES, bool GROUPS_OF_128>
__device__ __forceinline__ void use_tile(const PackedMatrix& m, const Tile<KIND, GROUPS_OF_128>& tile, int first,
                                         int count, const unsigned short* x, int row_stride, Sums<TILES>& sums) {
  const u32* const words = reinterpret_cast<const u32*>(tile.pieces);
  const auto scales = [&](int i) {
    if constexpr (!has_scales<KIND>()) return float2{1, 1};
    if (m.scale_kind == kBf16Scale) return float2{low_of(tile.scale[i][0]), high_of(tile.scale[i][0])};
    return scales_from(m.scale_kind, {tile.scale[i][0], tile.scale[i][1]});
  };
#pragma unroll
  for (int block = 0; block < tile.kBlocks; ++block) {
    if (block >= count) break;
#pragma unroll
    for (int step = 0; step < kBlockSteps; ++step) {
      int2 zero = {0, 0};
      if constexpr (KIND == kInt4 || KIND == kInt8) {
        const u32 both = tile.zero[GROUPS_OF_128 ? block / 2 : block * kBlockSteps + step];
        zero = {static_cast<int>(both & 0xffffU), static_cast<int>(both >> 16)};
      }
      u32 a[operands<KIND>()][4];
      operands_of<KIND>(words + (block * kBlockSteps + step) * (step_bytes(KIND) / 4), zero, a);
#pragma unroll
      for (int n = 0; n < TILES; ++n) {
        const uint2 b =
            *reinterpret_cast<const uint2*>(x + n * 8 * row_stride + block * kBlockColumns + step * kStepColumns);
#pragma unroll
        for (int i = 0; i < operands<KIND>(); ++i) multiply_add(sums.group[n], a[i], b);
      }
      if constexpr (!GROUPS_OF_128) add_scaled(sums.slice, sums.group, scales(block * kBlockSteps + step));
    }
    if constexpr (GROUPS_OF_128) {
      const bool ends_group = (tile.kBlocks % 2 == 0 ? block & 1 : (first + block) & 1) != 0 || block + 1 == count;
      if (ends_group) add_scaled(sums.slice, sums.group, scales(block / 2));
    }
  }
}

// One slice of a panel is summed: its partial sums go to memory.
template <int TILES>
__device__ __forceinline__ void store_partial(const PackedMatrix& m, const LinearCall& call, const Unit& at, int lane,
                                              const Sums<TILES>& sums) {
  const int g = lane >> 2, t = lane & 3;
  const int slice = at.number / m.panel_count;
  float* const to = call.partials + (static_cast<long long>(at.panel) * m.slices + slice) * call.rows * kPanelRows;
#pragma unroll
  for (int n = 0; n < TILES; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = n * 8 + t * 2 + (i & 1);
      if (row < call.rows) __stcg(to + row * kPanelRows + g + 8 * (i >> 1), sums.slice[n][i]);
    }
  }
}

// All slices of a panel for one element: row of activations, row of the panel.
__device__ __forceinline__ float add_slices(const PackedMatrix& m, const LinearCall& call, int panel, int element) {
  const long long size = static_cast<long long>(call.rows) * kPanelRows;
  const float* const from = call.partials + panel * (m.slices * size) + element;
  float sum = __ldcg(from);
  for (int slice = 1; slice < m.slices; ++slice) sum += __ldcg(from + slice * size);
  return sum * m.panels[panel].factor;
}

__device__ __forceinline__ float biased(const LinearCall& call, float sum, int row) {
  return call.bias != nullptr ? sum + call.bias[row] : sum;
}

__device__ __noinline__ void finish_panel(const PackedMatrix& m, const LinearCall& call, int panel, int lane) {
  const PanelRows rows = m.panels[panel];
  for (int i = lane; i < call.rows * kPanelRows; i += 32) {
    const int r = i % kPanelRows;
    if (r >= rows.count) continue;
    call.y[static_cast<long long>(i / kPanelRows) * call.y_columns + rows.first + r] =
        biased(call, add_slices(m, call, panel, i), rows.first + r);
  }
}

__device__ __noinline__ void finish_pair(const PackedMatrix& m, const LinearCall& call, int pair, int lane) {
  const PanelRows gate = m.panels[2 * pair];
  const PanelRows up = m.panels[2 * pair + 1];
  for (int i = lane; i < call.rows * kPanelRows; i += 32) {
    const int r = i % kPanelRows;
    if (r >= gate.count) continue;
    const float g = biased(call, add_slices(m, call, 2 * pair, i), gate.first + r);
    const float u = biased(call, add_slices(m, call, 2 * pair + 1, i), up.first + r);
    call.y[static_cast<long long>(i / kPanelRows) * call.y_columns + gate.first + r] = silu(g) * u;
  }
}

// The warp that comes last of all slices of a panel (or of a gate and its other half) finishes it.
__device__ __forceinline__ void arrive(const PackedMatrix& m, const LinearCall& call, int panel, int lane) {
  const int target = call.swiglu ? panel / 2 : panel;
  const unsigned expected = (call.swiglu ? 2U : 1U) * m.slices;
  __syncwarp();
  unsigned before = 0;
  if (lane == 0) {
    __threadfence();
    before = atomicInc(call.counters + target, expected - 1);  // becomes zero again with the last
    __threadfence();
  }
  before = __shfl_sync(0xffffffffU, before, 0);
  if (before != expected - 1) return;
  if (call.swiglu) {
    finish_pair(m, call, target, lane);
  } else {
    finish_panel(m, call, target, lane);
  }
}

// A slice of the activations in bf16; what is beyond the columns is zero. Rows that are not there were cleared before.
__device__ void load_activations(const PackedMatrix& m, const LinearCall& call, int slice, unsigned short* x,
                                 int row_stride) {
  const int first = slice * m.slice_blocks * kBlockColumns;
  const int count = min(m.slice_blocks, m.blocks - slice * m.slice_blocks) * kBlockColumns;
  const bool is_plain = m.source == nullptr && m.columns % 4 == 0;
  for (int row = 0; row < call.rows; ++row) {
    const float* const from = call.x + static_cast<long long>(row) * m.columns;
    for (int i = threadIdx.x; i < count / 4; i += kThreads) {
      float4 values = {0, 0, 0, 0};
      const int column = first + 4 * i;
      if (is_plain) {
        if (column < m.columns) values = *reinterpret_cast<const float4*>(from + column);
      } else {
        float* const each = &values.x;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int k = m.source != nullptr ? m.source[column + j] : column + j;
          if (k >= 0 && k < m.columns) each[j] = from[k];
        }
      }
      *reinterpret_cast<uint2*>(x + row * row_stride + 4 * i) = {pack_bf16(values.x, values.y),
                                                                 pack_bf16(values.z, values.w)};
    }
  }
}

template <int KIND, int TILES, bool GROUPS_OF_128>
__device__ __forceinline__ void multiply(const PackedMatrix& m, const LinearCall& call) {
  using Held = Tile<KIND, GROUPS_OF_128>;
  extern __shared__ __align__(16) unsigned short x[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int row_stride = m.slice_blocks * kBlockColumns + kRowPadding;
  const int units = m.panel_count * m.slices;
  const int first = static_cast<int>(static_cast<long long>(units) * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(static_cast<long long>(units) * (blockIdx.x + 1) / gridDim.x);
  // Weights are on their way before the first activation is looked at, two tiles ahead of their use: those of this
  // unit, then the first of the next one.
  Held tiles[2];
  Unit at, next;
  next.number = first + warp;
  if (next.number < end) {
    next.find(m, Held::kPieces, next.number, lane);
#pragma unroll
    for (int i = 0; i < 2; ++i) load_tile<KIND, GROUPS_OF_128>(m, next, next.block + i * Held::kBlocks, tiles[i]);
  }
  wait_for_previous();
  for (int i = threadIdx.x; i < TILES * 8 * row_stride / 8; i += kThreads) reinterpret_cast<uint4*>(x)[i] = {};
  for (int slice = first / m.panel_count; slice * m.panel_count < end; ++slice) {
    __syncthreads();
    load_activations(m, call, slice, x, row_stride);
    __syncthreads();
    const int slice_end = min(end, (slice + 1) * m.panel_count);
    while (next.number < slice_end) {
      at = next;
      next.number += kWarps;
      if (next.number < end) next.find(m, Held::kPieces, next.number, lane);
      const unsigned short* from = x + (lane >> 2) * row_stride + (lane & 3) * 4;
      Sums<TILES> sums = {};
      for (int block = at.block; block < at.last; block += 2 * Held::kBlocks) {
        const bool goes_on = block + 2 * Held::kBlocks < at.last;
        Unit reading = at;
        if (!goes_on) reading = next;
        const int read_from = goes_on ? block + 2 * Held::kBlocks : next.block;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int begin = block + i * Held::kBlocks;
          if (begin < at.last) {
            use_tile<KIND, TILES, GROUPS_OF_128>(m, tiles[i], begin, at.last - begin,
                                                 from + i * Held::kBlocks * kBlockColumns, row_stride, sums);
          }
          if (goes_on || next.number < end) {
            load_tile<KIND, GROUPS_OF_128>(m, reading, read_from + i * Held::kBlocks, tiles[i]);
          }
        }
        from += 2 * Held::kBlocks * kBlockColumns;
      }
      store_partial(m, call, at, lane, sums);
      arrive(m, call, at.panel, lane);
    }
  }
}

}  // namespace

#define YOKE_LINEAR(NAME, KIND, TILES, GROUPS)                                                                        \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)                                                           \
      yoke_linear_##NAME##_##TILES(const __grid_constant__ PackedMatrix m, const __grid_constant__ LinearCall call) { \
    multiply<KIND, TILES, GROUPS>(m, call);                                                                           \
  }

YOKE_LINEAR(int4, kInt4, 1, true)
YOKE_LINEAR(int4, kInt4, 2, true)
YOKE_LINEAR(int4_small, kInt4, 1, false)
YOKE_LINEAR(nvfp4, kNvfp4, 1, false)
YOKE_LINEAR(int8, kInt8, 1, true)
YOKE_LINEAR(int8_small, kInt8, 1, false)
YOKE_LINEAR(fp8, kFp8, 1, true)
YOKE_LINEAR(fp8_small, kFp8, 1, false)
YOKE_LINEAR(bf16, kBf16, 1, true)
YOKE_LINEAR(bf16, kBf16, 2, true)
YOKE_LINEAR(f16, kF16, 1, true)
YOKE_LINEAR(f32, kF32, 1, true)

}  // namespace yoke::ops::cuda
