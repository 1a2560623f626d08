// Weights times many rows of activations: for prompts, and for large batches. The sums are those of linear.cu to the
// bit: the same products in the same order, within groups of 128 columns, then over a slice, then over the slices.
//
// A block of threads takes 8 panels of weights and 128 rows of activations, a warp two panels and 64 rows. Activations
// come in bf16 through shared memory, three blocks of columns ahead; weights go from memory to registers, one ahead.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 128;  // of activations
constexpr int kTiles = 8;   // of 8 rows, of a warp
constexpr int kStages = 3;
constexpr int kStride = kBlockColumns + 16;  // elements of a row in shared memory: rows lie in other banks
constexpr int kStageElements = kRows * kStride;
constexpr int kSums = 2 * kTiles * 4;  // of a lane

__device__ __forceinline__ void copy_ahead(unsigned short* to, const unsigned short* from, bool is_there) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int size = is_there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(size));
}

__device__ __forceinline__ void multiply_add(float (&sums)[4], const u32 (&a)[4], uint2 b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

template <int KIND>
struct Weights {
  uint4 pieces[2][block_pieces(KIND)];
};

template <int KIND>
__device__ __forceinline__ void load_weights(const PackedMatrix& m, int panel, int block, int lane,
                                             Weights<KIND>& weights) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int own = min(panel + i, m.panel_count - 1);
    const auto* const from = reinterpret_cast<const uint4*>(m.values) +
                             (static_cast<long long>(own) * m.blocks + block) * (block_pieces(KIND) * 32) + lane;
#pragma unroll
    for (int p = 0; p < block_pieces(KIND); ++p) weights.pieces[i][p] = from[p * 32];
  }
}

// A block of columns of the rows of this block of threads.
__device__ __forceinline__ void load_activations(const PromptCall& call, int first_row, int block, unsigned short* to) {
#pragma unroll
  for (int i = threadIdx.x; i < kRows * 8; i += kThreads) {
    const int row = first_row + i / 8;
    const unsigned short* const from = call.x +
                                       static_cast<long long>(min(row, call.linear.rows - 1)) * call.x_columns +
                                       block * kBlockColumns + i % 8 * 8;
    copy_ahead(to + i / 8 * kStride + i % 8 * 8, from, row < call.linear.rows);
  }
}

template <int KIND>
__device__ __forceinline__ void multiply(const PackedMatrix& m, const PromptCall& call) {
  extern __shared__ __align__(16) unsigned short shared[];
  float* const totals = reinterpret_cast<float*>(shared + kStages * kStageElements) + threadIdx.x;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int g = lane >> 2, t = lane & 3;
  const int first_row = blockIdx.x * kRows;
  const int panel = blockIdx.y * 8 + (warp >> 1) * 2;
  const int own_first = (warp & 1) * (kTiles * 8);  // of the rows in shared memory
  float group[2][kTiles][4] = {}, slice[2][kTiles][4] = {};
  Weights<KIND> now, next;
  load_weights<KIND>(m, panel, 0, lane, next);
  wait_for_previous();
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < m.blocks) load_activations(call, first_row, i, shared + i * kStageElements);
    asm volatile("cp.async.commit_group;");
  }
  int in_slice = 0, stage = 0;
  for (int block = 0; block < m.blocks; ++block) {
    now = next;
    if (block + 1 < m.blocks) load_weights<KIND>(m, panel, block + 1, lane, next);
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2));
    __syncthreads();
    const int ahead = block + kStages - 1;
    if (ahead < m.blocks) {
      load_activations(call, first_row, ahead, shared + (stage + kStages - 1) % kStages * kStageElements);
    }
    asm volatile("cp.async.commit_group;");
    const unsigned short* const x = shared + stage * kStageElements + (own_first + g) * kStride + t * 4;
    int2 zero[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      zero[i] = {default_zero(KIND), default_zero(KIND)};
      if (KIND == kInt4 && m.zeros != nullptr) {
        zero[i] = zeros_of(m, min(panel + i, m.panel_count - 1), group_of(m, block * kBlockSteps), g);
      }
    }
#pragma unroll
    for (int step = 0; step < kBlockSteps; ++step) {
      u32 a[2][1][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        operands_of<KIND>(reinterpret_cast<const u32*>(now.pieces[i]) + step * (step_bytes(KIND) / 4), zero[i], a[i]);
      }
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
        const uint2 b = *reinterpret_cast<const uint2*>(x + n * 8 * kStride + step * kStepColumns);
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_add(group[i][n], a[i][0], b);
      }
    }
    ++in_slice;
    const bool slice_ends = in_slice == m.slice_blocks || block + 1 == m.blocks;
    if ((block & 1) != 0 || slice_ends) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float2 scale = {1, 1};
        if constexpr (KIND != kBf16) {
          scale = scales_from(m.scale_kind,
                              stored_scales(m, min(panel + i, m.panel_count - 1), group_of(m, block * kBlockSteps), g));
        }
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
          slice[i][n][0] = fmaf(scale.x, group[i][n][0], slice[i][n][0]);
          slice[i][n][1] = fmaf(scale.x, group[i][n][1], slice[i][n][1]);
          slice[i][n][2] = fmaf(scale.y, group[i][n][2], slice[i][n][2]);
          slice[i][n][3] = fmaf(scale.y, group[i][n][3], slice[i][n][3]);
          group[i][n][0] = group[i][n][1] = group[i][n][2] = group[i][n][3] = 0;
        }
      }
    }
    if (slice_ends && m.slices > 1) {
      const bool is_first = block < m.slice_blocks;
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        float& sum = slice[i / (kTiles * 4)][i / 4 % kTiles][i % 4];
        totals[i * kThreads] = is_first ? sum : totals[i * kThreads] + sum;
        sum = 0;
      }
      in_slice = 0;
    }
    stage = (stage + 1) % kStages;
  }
  const LinearCall& to = call.linear;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (panel + i >= m.panel_count || (to.swiglu != 0 && i == 1)) continue;
    const PanelRows rows = m.panels[panel + i];
    const PanelRows other = m.panels[min(panel + 1, m.panel_count - 1)];
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = first_row + own_first + n * 8 + t * 2 + (j & 1), r = g + 8 * (j >> 1);
        if (row >= to.rows || r >= rows.count) continue;
        const auto total = [&](int half, const PanelRows& of) {
          const int at = (half * kTiles + n) * 4 + j;
          const float sum = (m.slices > 1 ? totals[at * kThreads] : slice[half][n][j]) * of.factor;
          return to.bias != nullptr ? sum + to.bias[of.first + r] : sum;
        };
        float value = total(i, rows);
        if (to.swiglu != 0) value = value / (1 + expf(-value)) * total(1, other);
        to.y[static_cast<long long>(row) * to.y_columns + rows.first + r] = value;
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    yoke_prompt_int4(const __grid_constant__ PackedMatrix m, const __grid_constant__ PromptCall call) {
  multiply<kInt4>(m, call);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    yoke_prompt_bf16(const __grid_constant__ PackedMatrix m, const __grid_constant__ PromptCall call) {
  multiply<kBf16>(m, call);
}

// Activations in bf16, in the order of a matrix's packed columns; a block of threads for each row.
extern "C" __global__ void yoke_round_activations(const float* x, const int* source, int columns, int x_columns,
                                                  unsigned short* to) {
  wait_for_previous();
  const float* const from = x + static_cast<long long>(blockIdx.x) * columns;
  u32* const pairs = reinterpret_cast<u32*>(to + static_cast<long long>(blockIdx.x) * x_columns);
  for (int i = threadIdx.x; i < x_columns / 2; i += blockDim.x) {
    float each[2];
    for (int j = 0; j < 2; ++j) {
      const int column = source != nullptr ? source[2 * i + j] : 2 * i + j;
      each[j] = column >= 0 && column < columns ? from[column] : 0;
    }
    pairs[i] = pack_bf16(each[0], each[1]);
  }
}

}  // namespace yoke::ops::cuda
