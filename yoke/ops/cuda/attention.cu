// Attention over pages: softmax(scale * q k) v over the tokens up to each query's own. The tokens of a sequence are cut
// into splits of 256, counted from its start. A block of threads takes a row, a head of keys and up to four query heads
// that read it: each thread scores one token, then threads share the columns of the values. Splits are merged in
// ascending order by one formula, whether one block does them in turn or several at once, so a row's bits do not depend
// on its batch nor on how its prompt was cut.
#include "yoke/ops/cuda/fragments.cuh"

namespace yoke::ops::cuda {
namespace {

constexpr int kSplit = 256;  // Backend's kAttentionSplit
constexpr int kThreads = kSplit;
constexpr int kWarps = kThreads / 32;
constexpr int kHeads = 4;  // at once
constexpr int kMaxWidth = 512;
constexpr int kAhead = 8;  // loads of a thread before it uses the first

struct Room {
  float q[kHeads * kMaxWidth];
  float weights[kHeads][kSplit];
  float sums[kThreads][2 * kHeads];
  float parts[kHeads][kWarps];
  float most[kHeads], mass[kHeads];
  long long places[kSplit];  // of the split's tokens in the pages
};

// The tokens of a row that lie in a split, as [first, end) of the sequence.
struct Tokens {
  int first, end;
};

struct Place {
  int row, kv_head, first_head, heads;  // query heads first_head to first_head + heads
  SequenceInfo sequence;
  Tokens seen;
};

__device__ __forceinline__ Place place_of(const AttendCall& call, const StepInfo& step, int unit, int row) {
  const int group = call.heads / call.cache.kv_heads;
  const int passes = (group + kHeads - 1) / kHeads;
  Place at;
  at.row = row;
  at.kv_head = unit / passes;
  at.first_head = at.kv_head * group + unit % passes * kHeads;
  at.heads = min(kHeads, (at.kv_head + 1) * group - at.first_head);
  at.sequence = step.sequences[step.sequence_of[row]];
  at.seen.end = step.positions[row] + 1;
  at.seen.first = call.window > 0 ? max(0, at.seen.end - call.window) : 0;
  return at;
}

__device__ __forceinline__ long long vector_of(const CacheInfo& cache, const StepInfo& step, const Place& at,
                                               int token) {
  const int page = step.pages[at.sequence.first_page + token / cache.page_tokens];
  return ((static_cast<long long>(page) * cache.kv_heads + at.kv_head) * cache.page_tokens +
          token % cache.page_tokens) *
         cache.width;
}

// Two numbers as they are stored, and as floats: apart, so that a load is not waited for where it is made.
__device__ __forceinline__ uint2 stored_pair(const void* from, int kind, long long at) {
  if (kind == kF32Cache) return *reinterpret_cast<const uint2*>(static_cast<const float*>(from) + at);
  uint2 pair = {0, 0};
  pair.x = *reinterpret_cast<const u32*>(static_cast<const unsigned short*>(from) + at);
  return pair;
}
__device__ __forceinline__ float2 pair_from(int kind, uint2 stored) {
  if (kind == kF32Cache) return {__uint_as_float(stored.x), __uint_as_float(stored.y)};
  if (kind == kBf16Cache) return {low_of(stored.x), high_of(stored.x)};
  return {f16_to_float(stored.x & 0xffffU), f16_to_float(stored.x >> 16)};
}

__device__ __forceinline__ void use_pair(const Room& room, int width, int d, float2 key, float (&scores)[kHeads]) {
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const float2 q = *reinterpret_cast<const float2*>(room.q + h * width + d);
    scores[h] = fmaf(q.y, key.y, fmaf(q.x, key.x, scores[h]));
  }
}

// The scores of the token whose vectors begin at `vector` of the pages.
__device__ __forceinline__ void score(const AttendCall& call, const Room& room, long long vector,
                                      float (&scores)[kHeads]) {
  const int width = call.cache.width;
  if (call.cache.kind != kF32Cache && width % 8 == 0) {
    const auto* const keys =
        reinterpret_cast<const uint4*>(static_cast<const unsigned short*>(call.cache.keys) + vector);
    for (int first = 0; first < width / 8; first += kAhead) {
      uint4 held[kAhead];  // all on their way before the first is used
#pragma unroll
      for (int i = 0; i < kAhead; ++i) held[i] = first + i < width / 8 ? keys[first + i] : uint4{};
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (first + i >= width / 8) break;
        const u32 pairs[4] = {held[i].x, held[i].y, held[i].z, held[i].w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float2 key = call.cache.kind == kBf16Cache
                                 ? float2{low_of(pairs[j]), high_of(pairs[j])}
                                 : float2{f16_to_float(pairs[j] & 0xffffU), f16_to_float(pairs[j] >> 16)};
          use_pair(room, width, 8 * (first + i) + 2 * j, key, scores);
        }
      }
    }
  } else {
    for (int d = 0; d < width; d += 2) {
      use_pair(room, width, d, pair_from(call.cache.kind, stored_pair(call.cache.keys, call.cache.kind, vector + d)),
               scores);
    }
  }
}

__device__ void load_queries(const AttendCall& call, const Place& at, Room& room) {
  const int width = call.cache.width;
  for (int i = threadIdx.x; i < kHeads * width; i += kThreads) {
    const int h = i / width;
    room.q[i] = h < at.heads ? call.q[(static_cast<long long>(at.row) * call.heads + at.first_head) * width + i] : 0;
  }
  __syncthreads();
}

// Largest score and mass of a split into the room, the weighted sum of its values into this thread's column pairs:
// thread i < width / 2 has columns 2 i and 2 i + 1 in values[head][2].
__device__ void attend_split(const AttendCall& call, const StepInfo& step, const Place& at, Tokens tokens, int split,
                             Room& room, float (&values)[kHeads][2]) {
  const int width = call.cache.width;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int token = split * kSplit + static_cast<int>(threadIdx.x);
  const bool is_seen = token >= tokens.first && token < tokens.end;
  float scores[kHeads] = {};
  if (is_seen) {
    const long long place = vector_of(call.cache, step, at, token);
    room.places[threadIdx.x] = place;
    score(call, room, place, scores);
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    scores[h] = is_seen ? scores[h] * call.scale : -INFINITY;
    float most = scores[h];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, offset));
    if (lane == 0) room.parts[h][warp] = most;
  }
  __syncthreads();
  float masses[kHeads];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    float most = room.parts[h][0];
    for (int w = 1; w < kWarps; ++w) most = fmaxf(most, room.parts[h][w]);
    if (threadIdx.x == 0) room.most[h] = most;
    const float weight = is_seen ? expf(scores[h] - most) : 0;
    room.weights[h][threadIdx.x] = weight;
    masses[h] = weight;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) masses[h] += __shfl_xor_sync(0xffffffffU, masses[h], offset);
  }
  __syncthreads();
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (lane == 0) room.parts[h][warp] = masses[h];
  }
  const int pairs = width / 2;
  const int teams = kThreads / pairs;
  const int team = threadIdx.x / pairs, pair = threadIdx.x % pairs;
  float sums[kHeads][2] = {};
  if (team < teams) {
    const int first = split * kSplit;
    int i = team;
    if (first + i < tokens.first) i += (tokens.first - first - i + teams - 1) / teams * teams;
    const int end = min(kSplit, tokens.end - first);
    for (; i < end; i += kAhead * teams) {
      uint2 held[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        const long long place = room.places[min(i + j * teams, end - 1)];  // beyond the end the last one again
        held[j] = stored_pair(call.cache.values, call.cache.kind, place + 2 * pair);
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        if (i + j * teams >= end) break;
        const float2 value = pair_from(call.cache.kind, held[j]);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          sums[h][0] = fmaf(room.weights[h][i + j * teams], value.x, sums[h][0]);
          sums[h][1] = fmaf(room.weights[h][i + j * teams], value.y, sums[h][1]);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      room.sums[threadIdx.x][2 * h] = sums[h][0];
      room.sums[threadIdx.x][2 * h + 1] = sums[h][1];
    }
  }
  __syncthreads();
  if (threadIdx.x < kHeads) {
    float mass = 0;
    for (int w = 0; w < kWarps; ++w) mass += room.parts[threadIdx.x][w];
    room.mass[threadIdx.x] = mass;
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    values[h][0] = values[h][1] = 0;
    if (static_cast<int>(threadIdx.x) >= pairs) continue;
    for (int one = 0; one < teams; ++one) {
      values[h][0] += room.sums[one * pairs + threadIdx.x][2 * h];
      values[h][1] += room.sums[one * pairs + threadIdx.x][2 * h + 1];
    }
  }
  __syncthreads();
}

__device__ __forceinline__ Tokens tokens_in(const Place& at, int split) {
  return {max(at.seen.first, split * kSplit), min(at.seen.end, (split + 1) * kSplit)};
}

// What has been merged so far of one column pair: the largest score, the mass, and the two sums.
struct Merged {
  float most = -INFINITY, mass = 0, values[2] = {};

  __device__ __forceinline__ void add(float split_most, float split_mass, float first, float second) {
    const float larger = fmaxf(most, split_most);
    const float old_factor = most == larger ? 1.0F : expf(most - larger);
    const float new_factor = split_most == larger ? 1.0F : expf(split_most - larger);
    most = larger;
    mass = fmaf(split_mass, new_factor, __fmul_rn(mass, old_factor));
    values[0] = fmaf(first, new_factor, __fmul_rn(values[0], old_factor));
    values[1] = fmaf(second, new_factor, __fmul_rn(values[1], old_factor));
  }
};

}  // namespace

// Blocks: heads of keys x passes over their query heads, rows.
extern "C" __global__ void __launch_bounds__(kThreads)
    yoke_attend(const __grid_constant__ AttendCall call, const __grid_constant__ StepInfo step) {
  wait_for_previous();
  __shared__ Room room;
  const Place at = place_of(call, step, blockIdx.x, blockIdx.y);
  load_queries(call, at, room);
  Merged merged[kHeads];
  for (int split = at.seen.first / kSplit; split * kSplit < at.seen.end; ++split) {
    float values[kHeads][2];
    attend_split(call, step, at, tokens_in(at, split), split, room, values);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) merged[h].add(room.most[h], room.mass[h], values[h][0], values[h][1]);
    __syncthreads();
  }
  if (static_cast<int>(threadIdx.x) >= call.cache.width / 2) return;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (h >= at.heads) continue;
    float* const y =
        call.y + (static_cast<long long>(at.row) * call.heads + at.first_head + h) * call.cache.width + 2 * threadIdx.x;
    y[0] = merged[h].values[0] / merged[h].mass;
    y[1] = merged[h].values[1] / merged[h].mass;
  }
}

// Blocks: splits, heads of keys x passes, rows.
extern "C" __global__ void __launch_bounds__(kThreads)
    yoke_attend_splits(const __grid_constant__ AttendCall call, const __grid_constant__ StepInfo step) {
  wait_for_previous();
  __shared__ Room room;
  const Place at = place_of(call, step, blockIdx.y, blockIdx.z);
  const int split = blockIdx.x;
  const Tokens tokens = tokens_in(at, split);
  if (tokens.first >= tokens.end) return;
  load_queries(call, at, room);
  float values[kHeads][2];
  attend_split(call, step, at, tokens, split, room, values);
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (h >= at.heads) continue;
    const long long head = static_cast<long long>(at.row) * call.heads + at.first_head + h;
    float* const to = call.partials + (head * call.splits + split) * (2 + call.cache.width);
    if (threadIdx.x == 0) {
      to[0] = room.most[h];
      to[1] = room.mass[h];
    }
    if (static_cast<int>(threadIdx.x) >= call.cache.width / 2) continue;
    to[2 + 2 * threadIdx.x] = values[h][0];
    to[3 + 2 * threadIdx.x] = values[h][1];
  }
}

// Blocks: heads, rows; threads: pairs of columns.
extern "C" __global__ void yoke_attend_merge(const __grid_constant__ AttendCall call,
                                             const __grid_constant__ StepInfo step) {
  wait_for_previous();
  const int width = call.cache.width;
  const int end = step.positions[blockIdx.y] + 1;
  const int first = call.window > 0 ? max(0, end - call.window) : 0;
  const long long head = static_cast<long long>(blockIdx.y) * call.heads + blockIdx.x;
  for (int i = threadIdx.x; i < width / 2; i += blockDim.x) {
    Merged merged;
#pragma unroll 8
    for (int split = first / kSplit; split * kSplit < end; ++split) {
      const float* const from = call.partials + (head * call.splits + split) * (2 + width);
      merged.add(from[0], from[1], from[2 + 2 * i], from[3 + 2 * i]);
    }
    call.y[head * width + 2 * i] = merged.values[0] / merged.mass;
    call.y[head * width + 2 * i + 1] = merged.values[1] / merged.mass;
  }
}

}  // namespace yoke::ops::cuda
