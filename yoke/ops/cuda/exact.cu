// Weights in f32 throughout: products for those who want no rounding, experts, and rows of a table.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

// What a lane holds of a block, with its scales: numbers[step][pair][first, second].
template <int KIND>
__device__ __forceinline__ void load_block(const PackedMatrix& m, int panel, int block, int lane,
                                           float (&numbers)[kBlockSteps][8]) {
  const auto* const from = reinterpret_cast<const uint4*>(m.values) +
                           (static_cast<long long>(panel) * m.blocks + block) * (block_pieces(KIND) * 32) + lane;
  uint4 pieces[block_pieces(KIND)];
#pragma unroll
  for (int i = 0; i < block_pieces(KIND); ++i) pieces[i] = from[i * 32];
  const u32* const words = reinterpret_cast<const u32*>(pieces);
#pragma unroll
  for (int step = 0; step < kBlockSteps; ++step) {
    int2 zero = {0, 0};
    float2 scale = {1, 1};
    const int group = min(group_of(m, block * kBlockSteps + step), m.groups - 1);
    if constexpr (KIND == kInt4 || KIND == kInt8) zero = zeros_of(m, panel, group, lane >> 2);
    if constexpr (KIND != kBf16 && KIND != kF16 && KIND != kF32) {
      scale = scales_from(m.scale_kind, stored_scales(m, panel, group, lane >> 2));
    }
    numbers_of<KIND>(words + step * (step_bytes(KIND) / 4), zero, numbers[step]);
#pragma unroll
    for (int i = 0; i < 8; ++i) numbers[step][i] *= i >> 1 & 1 ? scale.y : scale.x;
  }
}

__device__ __forceinline__ void load_block_of(const PackedMatrix& m, int panel, int block, int lane,
                                              float (&numbers)[kBlockSteps][8]) {
  switch (m.kind) {
    case kInt4:
      return load_block<kInt4>(m, panel, block, lane, numbers);
    case kNvfp4:
      return load_block<kNvfp4>(m, panel, block, lane, numbers);
    case kInt8:
      return load_block<kInt8>(m, panel, block, lane, numbers);
    case kFp8:
      return load_block<kFp8>(m, panel, block, lane, numbers);
    case kBf16:
      return load_block<kBf16>(m, panel, block, lane, numbers);
    case kF16:
      return load_block<kF16>(m, panel, block, lane, numbers);
    default:
      return load_block<kF32>(m, panel, block, lane, numbers);
  }
}

// The column of the activations that the first of a lane's four columns of a step takes, the others after it.
__device__ __forceinline__ float activation(const PackedMatrix& m, const float* x, int packed) {
  const int k = m.source != nullptr ? m.source[packed] : packed;
  return k >= 0 && k < m.columns ? x[k] : 0.0F;
}

// Sums of a panel's 16 rows for ROWS rows of activations: sums[row][half] of this lane's columns, over the blocks of
// this warp.
template <int ROWS>
__device__ __forceinline__ void sum_blocks(const PackedMatrix& m, const float* x, long long x_stride, int rows,
                                           int panel, float (&sums)[ROWS][2]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int t = lane & 3;
  for (int block = warp; block < m.blocks; block += kWarps) {
    float numbers[kBlockSteps][8];
    load_block_of(m, panel, block, lane, numbers);
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      if (row < rows) {
#pragma unroll
        for (int step = 0; step < kBlockSteps; ++step) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const float in = activation(m, x + row * x_stride, block * kBlockColumns + step * kStepColumns + 4 * t + j);
            const int first_pair = 2 * (j >> 1);
            sums[row][0] = fmaf(numbers[step][2 * first_pair + (j & 1)], in, sums[row][0]);
            sums[row][1] = fmaf(numbers[step][2 * first_pair + 2 + (j & 1)], in, sums[row][1]);
          }
        }
      }
    }
  }
}

// Over the lanes of a row, then over the warps, in fixed order. The result of row r of the activations and row i of the
// panel is totals[r][i].
template <int ROWS>
__device__ __forceinline__ void add_up(float (&sums)[ROWS][2], float (*parts)[ROWS][kPanelRows],
                                       float (*totals)[kPanelRows]) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sums[row][half];
      sum += __shfl_xor_sync(0xffffffffU, sum, 1);
      sum += __shfl_xor_sync(0xffffffffU, sum, 2);
      if ((lane & 3) == 0) parts[warp][row][(lane >> 2) + 8 * half] = sum;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * kPanelRows; i += kThreads) {
    float total = 0;
    for (int w = 0; w < kWarps; ++w) total += parts[w][i / kPanelRows][i % kPanelRows];
    totals[i / kPanelRows][i % kPanelRows] = total;
  }
  __syncthreads();
}

template <int ROWS>
__device__ __forceinline__ void multiply_panel(const PackedMatrix& m, const float* x, long long x_stride, int rows,
                                               int panel, float (*totals)[kPanelRows]) {
  __shared__ float parts[kWarps][ROWS][kPanelRows];
  float sums[ROWS][2] = {};
  sum_blocks<ROWS>(m, x, x_stride, rows, panel, sums);
  add_up<ROWS>(sums, parts, totals);
}

__device__ __forceinline__ float silu(float x) { return x / (1 + expf(-x)); }

}  // namespace

// Blocks: panels (or pairs of them, of a gate) x groups of eight rows of activations.
extern "C" __global__ void __launch_bounds__(kThreads)
    yoke_linear_exact(const __grid_constant__ PackedMatrix m, const __grid_constant__ LinearCall call) {
  wait_for_previous();
  constexpr int kRows = 8;
  __shared__ float totals[2][kRows][kPanelRows];
  const int first = blockIdx.y * kRows;
  const int rows = min(kRows, call.rows - first);
  const float* const x = call.x + static_cast<long long>(first) * m.columns;
  const int halves = call.swiglu ? 2 : 1;
  for (int half = 0; half < halves; ++half) {
    multiply_panel<kRows>(m, x, m.columns, rows, halves * blockIdx.x + half, totals[half]);
  }
  const PanelRows to = m.panels[halves * blockIdx.x];
  for (int i = threadIdx.x; i < rows * kPanelRows; i += kThreads) {
    const int row = i / kPanelRows, r = i % kPanelRows;
    if (r >= to.count) continue;
    const auto result = [&](int half) {
      const PanelRows of = m.panels[halves * blockIdx.x + half];
      const float sum = totals[half][row][r] * of.factor;
      return call.bias != nullptr ? sum + call.bias[of.first + r] : sum;
    };
    float value = result(0);
    if (call.swiglu) value = silu(value) * result(1);
    call.y[static_cast<long long>(first + row) * call.y_columns + to.first + r] = value;
  }
}

// Of each choice of each token: silu(gate) * up of its expert. Blocks: panels of a gate x choices. Panels of expert e:
// gate and up in turns, from 2 e panels_each on.
extern "C" __global__ void __launch_bounds__(kThreads)
    yoke_experts_in(const __grid_constant__ PackedMatrix m, const float* x, const int* ids, int choices,
                    int panels_each, int width, float* hidden) {
  wait_for_previous();
  __shared__ float totals[2][1][kPanelRows];
  const int pair = blockIdx.y;
  const int first_panel = 2 * (ids[pair] * panels_each + blockIdx.x);
  for (int half = 0; half < 2; ++half) {
    multiply_panel<1>(m, x + static_cast<long long>(pair / choices) * m.columns, 0, 1, first_panel + half,
                      totals[half]);
  }
  const int r = threadIdx.x;
  if (r >= kPanelRows || r >= m.panels[first_panel].count) return;
  hidden[static_cast<long long>(pair) * width + blockIdx.x * kPanelRows + r] =
      silu(totals[0][0][r] * m.panels[first_panel].factor) * (totals[1][0][r] * m.panels[first_panel + 1].factor);
}

// The weighted sum of what a token's experts make of it, best choice first. Blocks: panels x tokens.
extern "C" __global__ void __launch_bounds__(kThreads)
    yoke_experts_out(const __grid_constant__ PackedMatrix m, const float* hidden, const int* ids, const float* weights,
                     int choices, int panels_each, int width, float* y) {
  wait_for_previous();
  __shared__ float totals[1][kPanelRows];
  const long long token = blockIdx.y;
  float sum = 0;
  for (int i = 0; i < choices; ++i) {
    const long long pair = token * choices + i;
    const int panel = ids[pair] * panels_each + blockIdx.x;
    multiply_panel<1>(m, hidden + pair * m.columns, 0, 1, panel, totals);
    if (threadIdx.x < kPanelRows) sum += weights[pair] * (totals[0][threadIdx.x] * m.panels[panel].factor);
    __syncthreads();
  }
  const int r = threadIdx.x;
  const int count = min(kPanelRows, width - static_cast<int>(blockIdx.x) * kPanelRows);
  if (r < count) y[token * width + blockIdx.x * kPanelRows + r] = sum;
}

// Rows of a table; zeros for tokens that it does not have. Blocks: tokens x blocks of columns; 64 threads.
extern "C" __global__ void yoke_embed(const __grid_constant__ PackedMatrix m, const int* ids, int first_id, float* x) {
  wait_for_previous();
  const int row = ids[blockIdx.x] - first_id;
  float* const to = x + static_cast<long long>(blockIdx.x) * m.columns;
  const int packed = blockIdx.y * kBlockColumns + threadIdx.x;
  const int column = m.source != nullptr ? m.source[packed] : packed;
  if (column < 0 || column >= m.columns) return;
  const int panel = row >> 4;
  if (row < 0 || panel >= m.panel_count || (row & 15) >= m.panels[panel].count) {
    to[column] = 0;
    return;
  }
  const int half = row >> 3 & 1, k = threadIdx.x & 15, step = threadIdx.x >> 4;
  const int lane = (row & 7) * 4 + (k >> 2);
  float numbers[kBlockSteps][8];
  load_block_of(m, panel, blockIdx.y, lane, numbers);
  const int wanted = 2 * (half + 2 * (k >> 1 & 1)) + (k & 1);
  float value = 0;
#pragma unroll
  for (int s = 0; s < kBlockSteps; ++s) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (s == step && i == wanted) value = numbers[s][i];
    }
  }
  to[column] = value * m.panels[panel].factor;
}

}  // namespace yoke::ops::cuda
