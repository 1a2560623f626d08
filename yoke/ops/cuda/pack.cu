// From stored numbers (tensor/matrix.h) to the packed layout (layout.h), and packed weights made of random bits.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {
namespace {

// The stored number of a row of this call and a column, as the packed kind has it.
__device__ __forceinline__ u32 stored_code(const RawPart& raw, int row, int column) {
  const unsigned char* const from = raw.values + row * raw.row_bytes;
  switch (raw.value_kind) {
    case kInt4:
      return reinterpret_cast<const u32*>(from)[column >> 3] >> (4 * (column & 7)) & 15U;
    case kNvfp4:
      return from[column >> 1] >> (4 * (column & 1)) & 15U;
    case kInt8:
      return raw.is_signed ? from[column] ^ 0x80U : from[column];
    case kFp8:
      return from[column];
    case kF32:
      return reinterpret_cast<const u32*>(from)[column];
    default:
      return reinterpret_cast<const unsigned short*>(from)[column];
  }
}

__device__ __forceinline__ int stored_zero(const RawPart& raw, int row, int group) {
  if (raw.value_kind == kInt4) {
    const u32 word = reinterpret_cast<const u32*>(raw.zeros)[(row >> 3) * raw.scale_groups + group];
    return static_cast<int>(word >> (4 * (row & 7)) & 15U) + raw.zero_offset;
  }
  const int zero = raw.zeros[static_cast<long long>(row) * raw.scale_groups + group];
  return raw.is_signed ? zero ^ 0x80 : zero;
}

// splitmix64 (Steele, Lea, Flood 2014).
__device__ __forceinline__ unsigned long long mixed(unsigned long long z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

}  // namespace

// Blocks of 32 lanes: blocks of columns x panels of this call.
extern "C" __global__ void yoke_pack_values(const __grid_constant__ PackedMatrix m, const __grid_constant__ RawPart raw,
                                            unsigned char* values, int* bad) {
  const int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
  const int own_panel = (raw.first_row >> 4) + blockIdx.y;
  const long long panel = raw.first_panel + static_cast<long long>(own_panel) * raw.panel_step;
  const int bytes = step_bytes(m.kind) / 8;  // of one number, as a step has eight; 0: half of one
  u32 words[8 * kBlockSteps] = {};
  for (int step = 0; step < kBlockSteps; ++step) {
    for (int e = 0; e < 8; ++e) {
      const int p = e >> 1, j = e & 1;
      const int row = blockIdx.y * kPanelRows + g + 8 * (p & 1);
      const int packed = blockIdx.x * kBlockColumns + step * kStepColumns + 4 * t + 2 * (p >> 1) + j;
      const int column = raw.source != nullptr ? raw.source[packed] : packed;
      u32 code = 0;
      if (row < raw.row_count && column >= 0 && column < raw.columns) {
        code = stored_code(raw, row, column);
        if (raw.value_kind == kFp8 && (code & 0x7fU) == 0x7fU) *bad = 1;
      }
      if (bytes == 4) {
        words[step * 8 + 2 * p + j] = code;
      } else if (bytes == 2) {
        words[step * 4 + p] |= code << (16 * j);
      } else if (bytes == 1) {
        words[step * 2 + (p >> 1)] |= code << (8 * (2 * (p & 1) + j));
      } else {
        words[step] |= code << (4 * (p + 4 * j));
      }
    }
  }
  const int pieces = block_pieces(m.kind);
  auto* const to = reinterpret_cast<uint4*>(values) + (panel * m.blocks + blockIdx.x) * (pieces * 32) + lane;
  for (int i = 0; i < pieces; ++i) to[i * 32] = {words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
}

// One thread for each (panel, group, row of the panel).
extern "C" __global__ void yoke_pack_scales(const __grid_constant__ PackedMatrix m, const __grid_constant__ RawPart raw,
                                            unsigned char* scales, short* zeros, int panels, int* bad) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<long long>(panels) * m.groups * kPanelRows) return;
  const int in_panel = static_cast<int>(i % kPanelRows);
  const int group = static_cast<int>(i / kPanelRows % m.groups);
  const int own_panel = static_cast<int>(i / kPanelRows / m.groups);
  const int row = min(own_panel * kPanelRows + (in_panel >> 1) + 8 * (in_panel & 1), raw.rows - 1);
  const int from = raw.step_group != nullptr ? raw.step_group[group] : min(group, raw.scale_groups - 1);
  const long long panel = raw.first_panel + static_cast<long long>(own_panel) * raw.panel_step;
  const long long to = (panel * m.groups + group) * kPanelRows + in_panel;
  const long long stored = static_cast<long long>(row / raw.scale_rows) * raw.scale_groups + from;
  if (m.scale_kind == kF32Scale) {
    reinterpret_cast<u32*>(scales)[to] = reinterpret_cast<const u32*>(raw.scales)[stored];
  } else if (m.scale_kind == kE4m3Scale) {
    scales[to] = raw.scales[stored];
    if ((raw.scales[stored] & 0x7fU) == 0x7fU) *bad = 1;
  } else {
    reinterpret_cast<unsigned short*>(scales)[to] = reinterpret_cast<const unsigned short*>(raw.scales)[stored];
  }
  if (zeros != nullptr) {
    zeros[to] = static_cast<short>(raw.zeros != nullptr ? stored_zero(raw, row, from) : default_zero(m.kind));
  }
}

// Random words, as many as there are 16 bytes; `and_mask` and `or_mask` keep the numbers of a kind in a range.
extern "C" __global__ void yoke_fill(uint4* to, long long count, unsigned long long seed, u32 and_mask, u32 or_mask) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const unsigned long long a = mixed(seed + 2 * i), b = mixed(seed + 2 * i + 1);
    to[i] = {(static_cast<u32>(a) & and_mask) | or_mask, (static_cast<u32>(a >> 32) & and_mask) | or_mask,
             (static_cast<u32>(b) & and_mask) | or_mask, (static_cast<u32>(b >> 32) & and_mask) | or_mask};
  }
}

}  // namespace yoke::ops::cuda
