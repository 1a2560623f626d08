// Heads into pages of keys and values, and attention over them.
#include <algorithm>

#include "yoke/ops/cuda/backend.h"

namespace yoke::ops::cuda {
namespace {

constexpr std::int64_t kHeadsAtOnce = 4;  // attention.cu
constexpr std::int64_t kMaxWidth = 512;
constexpr std::int64_t kMaxRows = 65535;  // of one launch
constexpr unsigned kSplitThreads = 256;
// Partial results of splits are kept as long as they take no more than this; then one block does a row's splits.
constexpr std::size_t kMaxPartials = std::size_t{64} << 20;

int cache_kind(tensor::DType type) {
  if (type == tensor::DType::kF32) return kF32Cache;
  YOKE_CHECK(type == tensor::DType::kBf16 || type == tensor::DType::kF16, "{}", to_string(type));
  return type == tensor::DType::kBf16 ? kBf16Cache : kF16Cache;
}

}  // namespace

CacheInfo CudaBackend::cache_info(const CacheLayer& cache) const {
  YOKE_CHECK(cache.keys.shape.rank() == 4 && cache.keys.shape == cache.values.shape &&
                 cache.keys.type == cache.values.type && cache.keys.extent(2) == step_.page_tokens &&
                 cache.keys.extent(3) % 2 == 0 && cache.keys.extent(3) <= kMaxWidth,
             "{} and {} with pages of {} tokens", to_string(cache.keys.shape), to_string(cache.values.shape),
             step_.page_tokens);
  return {.keys = reinterpret_cast<void*>(cache.keys.address),
          .values = reinterpret_cast<void*>(cache.values.address),
          .kind = cache_kind(cache.keys.type),
          .kv_heads = static_cast<int>(cache.keys.extent(1)),
          .width = static_cast<int>(cache.keys.extent(3)),
          .page_tokens = step_.page_tokens};
}

void CudaBackend::place_heads(const Slab& qkv, const HeadsOptions& options, const CacheLayer& cache, const Slab& q) {
  const CacheInfo info = cache_info(cache);
  const std::int64_t heads = options.heads + 2 * options.kv_heads;
  YOKE_CHECK(qkv.shape == tensor::Shape({rows_, heads * options.width}) &&
                 q.shape == tensor::Shape({rows_, options.heads, options.width}) && info.kv_heads == options.kv_heads &&
                 info.width == options.width && 2 * half_ == options.width,
             "{} into {} and {}", to_string(qkv.shape), to_string(q.shape), to_string(cache.keys.shape));
  const auto norm = [](const Slab* slab) {
    return slab != nullptr ? reinterpret_cast<const float*>(slab->address) : nullptr;
  };
  const HeadsCall call{.qkv = reinterpret_cast<const float*>(qkv.address),
                       .q_norm = norm(options.q_norm),
                       .k_norm = norm(options.k_norm),
                       .q = reinterpret_cast<float*>(q.address),
                       .epsilon = options.epsilon,
                       .heads = static_cast<int>(options.heads)};
  YOKE_CHECK_LE(rows_, kMaxRows);
  const unsigned threads = options.width > 128 ? 128 : 64;
  kernels().place_heads.launch(
      stream(), {.blocks = {static_cast<unsigned>(heads), static_cast<unsigned>(rows_), 1}, .threads = threads}, call,
      info, step_);
}

void CudaBackend::attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) {
  const CacheInfo info = cache_info(cache);
  YOKE_CHECK(q.shape.rank() == 3 && q.shape == y.shape && q.extent(0) == rows_ && q.extent(2) == info.width &&
                 q.extent(1) % info.kv_heads == 0 && rows_ <= kMaxRows,
             "{} into {} over {} rows", to_string(q.shape), to_string(y.shape), rows_);
  const std::int64_t heads = q.extent(1);
  const std::int64_t passes = tensor::ceil_divide(heads / info.kv_heads, kHeadsAtOnce);
  const std::int64_t splits = std::max<std::int64_t>(1, tensor::ceil_divide(longest_, kAttentionSplit));
  AttendCall call{.q = reinterpret_cast<const float*>(q.address),
                  .y = reinterpret_cast<float*>(y.address),
                  .cache = info,
                  .heads = static_cast<int>(heads),
                  .window = static_cast<int>(options.window),
                  .splits = static_cast<int>(splits),
                  .scale = options.scale};
  const auto units = static_cast<unsigned>(info.kv_heads * passes);
  const auto rows = static_cast<unsigned>(rows_);
  const std::size_t partials = static_cast<std::size_t>(rows_ * heads * splits * (2 + info.width)) * sizeof(float);
  const bool is_enough = std::int64_t{units} * rows >= 4 * multiprocessors_;  // to keep the GPU busy
  if (splits == 1 || is_enough || partials > kMaxPartials) {
    kernels().attend.launch(stream(), {.blocks = {units, rows, 1}, .threads = kSplitThreads}, call, step_);
    return;
  }
  call.partials = static_cast<float*>(partials_.need(partials));
  kernels().attend_splits.launch(
      stream(), {.blocks = {static_cast<unsigned>(splits), units, rows}, .threads = kSplitThreads}, call, step_);
  kernels().attend_merge.launch(stream(), {.blocks = {static_cast<unsigned>(heads), rows, 1}, .threads = 64}, call,
                                step_);
}

}  // namespace yoke::ops::cuda
