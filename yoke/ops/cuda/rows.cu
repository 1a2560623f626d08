// What looks at one row at a time: norms, heads into pages, the router, rows of the head. A block of threads has a row,
// and adds in one fixed order.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {
namespace {

// The sum over a block of threads, the same for all of them: within warps by halves, then over warps from first to
// last.
__device__ __forceinline__ float block_sum(float value, float* parts) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  __syncthreads();
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  float sum = 0;
  for (unsigned w = 0; w < (blockDim.x + 31) / 32; ++w) sum += parts[w];
  return sum;
}

}  // namespace

namespace {

constexpr int kHeld = 4;  // vectors of four that a thread keeps of a row

__device__ __forceinline__ float4 add_four(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// A row that the threads can hold: it is read once.
__device__ __forceinline__ void norm_held(const float* x, float* residual, const float* weight, float epsilon,
                                          int width, float* y, float* parts) {
  float4 held[kHeld];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int c = 4 * (i * blockDim.x + threadIdx.x);
    held[i] = {0, 0, 0, 0};
    if (c >= width) continue;
    held[i] = *reinterpret_cast<const float4*>(residual + c);
    if (x != nullptr) held[i] = add_four(held[i], *reinterpret_cast<const float4*>(x + c));
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int c = 4 * (i * blockDim.x + threadIdx.x);
    if (x != nullptr && c < width) *reinterpret_cast<float4*>(residual + c) = held[i];
    squares = fmaf(held[i].x, held[i].x, squares);
    squares = fmaf(held[i].y, held[i].y, squares);
    squares = fmaf(held[i].z, held[i].z, squares);
    squares = fmaf(held[i].w, held[i].w, squares);
  }
  const float mean = block_sum(squares, parts) / static_cast<float>(width);
  const float factor = 1 / sqrtf(mean + epsilon);
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int c = 4 * (i * blockDim.x + threadIdx.x);
    if (c >= width) continue;
    const float4 w = *reinterpret_cast<const float4*>(weight + c);
    *reinterpret_cast<float4*>(y + c) = {held[i].x * factor * w.x, held[i].y * factor * w.y, held[i].z * factor * w.z,
                                         held[i].w * factor * w.w};
  }
}

}  // namespace

// residual += x, where x is given; y = norm(residual) * weight. A block for each row; at most 1024 threads.
extern "C" __global__ void __launch_bounds__(1024)
    yoke_norm(const float* x, float* residual, const float* weight, float epsilon, int width, float* y) {
  wait_for_previous();
  __shared__ float parts[32];
  const long long first = static_cast<long long>(blockIdx.x) * width;
  if (width % 4 == 0 && width <= static_cast<int>(4 * kHeld * blockDim.x)) {
    return norm_held(x != nullptr ? x + first : nullptr, residual + first, weight, epsilon, width, y + first, parts);
  }
  float squares = 0;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float value = residual[first + c];
    if (x != nullptr) {
      value += x[first + c];
      residual[first + c] = value;
    }
    squares = fmaf(value, value, squares);
  }
  const float mean = block_sum(squares, parts) / static_cast<float>(width);
  const float factor = 1 / sqrtf(mean + epsilon);
  for (int c = threadIdx.x; c < width; c += blockDim.x) y[first + c] = residual[first + c] * factor * weight[c];
}

extern "C" __global__ void yoke_add(const float* x, float* residual, long long count) {
  wait_for_previous();
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) residual[i] += x[i];
}

// y[t, n] = silu(both[t, n]) * both[t, width + n].
extern "C" __global__ void yoke_swiglu(const float* both, int width, float* y) {
  wait_for_previous();
  const float* const from = both + static_cast<long long>(blockIdx.x) * 2 * width;
  for (int n = threadIdx.x; n < width; n += blockDim.x) {
    y[static_cast<long long>(blockIdx.x) * width + n] = from[n] / (1 + expf(-from[n])) * from[width + n];
  }
}

extern "C" __global__ void yoke_pick_rows(const float* x, const int* rows, int width, float* y) {
  wait_for_previous();
  const float* const from = x + static_cast<long long>(rows[blockIdx.x]) * width;
  float* const to = y + static_cast<long long>(blockIdx.x) * width;
  for (int c = threadIdx.x; c < width; c += blockDim.x) to[c] = from[c];
}

// Cosine and sine of position * frequency, a product of floats as in rope.h. A block for each row.
extern "C" __global__ void yoke_angles(const int* positions, const float* frequencies, int half, float2* angles) {
  wait_for_previous();
  const auto position = static_cast<float>(positions[blockIdx.x]);
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    float2 angle;
    sincosf(position * frequencies[i], &angle.y, &angle.x);
    angles[static_cast<long long>(blockIdx.x) * half + i] = angle;
  }
}

namespace {

__device__ __forceinline__ void store_cached(void* to, int kind, long long at, float value) {
  if (kind == kF32Cache) {
    static_cast<float*>(to)[at] = value;
  } else {
    const u32 bits = kind == kBf16Cache ? pack_bf16(value, 0) : pack_f16(value, 0);
    static_cast<unsigned short*>(to)[at] = static_cast<unsigned short>(bits);
  }
}

}  // namespace

// Blocks: heads of q, k and v x rows; threads: the pairs of a head, in warps of which each may have several.
extern "C" __global__ void yoke_place_heads(const __grid_constant__ HeadsCall call,
                                            const __grid_constant__ CacheInfo cache,
                                            const __grid_constant__ StepInfo step) {
  wait_for_previous();
  __shared__ float parts[32];
  const int row = blockIdx.y, head = blockIdx.x;
  const int width = cache.width, half = width / 2;
  const bool is_q = head < call.heads, is_k = !is_q && head < call.heads + cache.kv_heads;
  const float* const from = call.qkv + (static_cast<long long>(row) * (call.heads + 2 * cache.kv_heads) + head) * width;
  const SequenceInfo sequence = step.sequences[step.sequence_of[row]];
  const int position = step.positions[row];
  const int kv_head = head - call.heads - (is_k ? 0 : cache.kv_heads);
  long long place = 0;
  if (!is_q) {
    const int page = step.pages[sequence.first_page + position / step.page_tokens];
    place =
        ((static_cast<long long>(page) * cache.kv_heads + kv_head) * step.page_tokens + position % step.page_tokens) *
        width;
  }
  if (!is_q && !is_k) {
    for (int d = threadIdx.x; d < width; d += blockDim.x) store_cached(cache.values, cache.kind, place + d, from[d]);
    return;
  }
  const float* const norm = is_q ? call.q_norm : call.k_norm;
  float factor = 1;
  if (norm != nullptr) {
    float squares = 0;
    for (int d = threadIdx.x; d < width; d += blockDim.x) squares = fmaf(from[d], from[d], squares);
    factor = 1 / sqrtf(block_sum(squares, parts) / static_cast<float>(width) + call.epsilon);
  }
  const float2* const angles = reinterpret_cast<const float2*>(step.angles) + static_cast<long long>(row) * half;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    float a = from[i], b = from[i + half];
    if (norm != nullptr) {
      a = a * factor * norm[i];
      b = b * factor * norm[i + half];
    }
    const float2 angle = angles[i];
    const float first = a * angle.x - b * angle.y, second = b * angle.x + a * angle.y;
    if (is_q) {
      float* const to = call.q + (static_cast<long long>(row) * call.heads + head) * width;
      to[i] = first;
      to[i + half] = second;
    } else {
      store_cached(cache.keys, cache.kind, place + i, first);
      store_cached(cache.keys, cache.kind, place + i + half, second);
    }
  }
}

// softmax(scores), and the best of it: of equal scores the lower expert. A warp for each row.
extern "C" __global__ void yoke_route(const float* scores, int experts, int count, int renormalize, int* ids,
                                      float* weights) {
  wait_for_previous();
  const int lane = threadIdx.x;
  const float* const from = scores + static_cast<long long>(blockIdx.x) * experts;
  int* const own_ids = ids + static_cast<long long>(blockIdx.x) * count;
  float* const own_weights = weights + static_cast<long long>(blockIdx.x) * count;
  float sum = 0, most = -INFINITY, chosen = 0;
  for (int i = 0; i < count; ++i) {
    float best = -INFINITY;
    int best_id = 0x7fffffff;
    for (int e = lane; e < experts; e += 32) {
      bool is_taken = false;
      for (int j = 0; j < i; ++j) is_taken = is_taken || own_ids[j] == e;
      if (!is_taken && (best_id == 0x7fffffff || from[e] > best)) {
        best = from[e];
        best_id = e;
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(0xffffffffU, best, offset);
      const int other_id = __shfl_xor_sync(0xffffffffU, best_id, offset);
      if (other > best || (other == best && other_id < best_id) || best_id == 0x7fffffff) {
        best = other;
        best_id = other_id;
      }
    }
    if (i == 0) {
      most = best;
      for (int e = lane; e < experts; e += 32) sum += expf(from[e] - most);
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    }
    const float weight = expf(best - most) / sum;
    chosen += weight;
    if (lane == 0) {
      own_ids[i] = best_id == 0x7fffffff ? i : best_id;  // scores that are no numbers choose as if all were equal
      own_weights[i] = weight;
    }
    __syncwarp();
  }
  if (renormalize == 0) return;
  for (int i = lane; i < count; i += 32) own_weights[i] /= chosen;
}

}  // namespace yoke::ops::cuda
