// Whether what a rank holds fits the memory that it has, and how many tokens of cache fit beside the weights. One
// function decides: plans print it before anything is downloaded, the engine refuses by it before anything is loaded,
// so both give the same answer for the same numbers.
//
//   const MemoryNeed need{.weights = packed, .work_space = step_work_space(shape), .cache = …};
//   fit_memory(need, {.available = Bytes{…}, .kind = MemoryKind::kUnified}, 4096).fits();
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

#include "yoke/base/units.h"

namespace yoke::spec {

// Where weights lie: the processor's memory, a GPU's own, or one that a GPU shares with the operating system.
enum class MemoryKind { kHost, kGpu, kUnified };

// What stays free of what is available. A machine whose GPU shares its memory hangs instead of failing when that runs
// out (34 to 12.7 GiB in 1.5 s were recorded on a DGX Spark), so much stays free there.
constexpr Bytes memory_reserve(Bytes available, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kUnified:
      return std::max(Bytes{std::int64_t{8} << 30}, Bytes{available.value / 25 * 2});
    case MemoryKind::kGpu:
      return Bytes{available.value / 20};
    case MemoryKind::kHost:
      break;
  }
  // The kernel, the page cache that loading goes through, and other programs.
  return Bytes{(std::int64_t{32} << 20) + available.value / 32};
}

// What one rank takes, of the largest part.
struct MemoryNeed {
  Bytes weights;      // as the backend packs them (its packed_bytes), not as files hold them
  Bytes work_space;   // activations of a step
  Bytes others = {};  // the engine itself, collectives, gradients, the optimizer's state
  std::function<Bytes(std::int64_t tokens)> cache = {};  // of so many tokens, by the engine's rules; empty: none
};

struct MemoryRoom {
  Bytes available;  // for this rank
  MemoryKind kind = MemoryKind::kHost;
};

struct MemoryFit {
  Bytes needed;
  Bytes reserve;
  Bytes left;  // negative: so much is missing
  bool fits() const { return left.value >= 0; }
};

MemoryFit fit_memory(const MemoryNeed& need, const MemoryRoom& room, std::int64_t tokens);
// Tokens of cache that fit, at most `max`; 0 where not even one does. The cache must not shrink with more tokens.
std::int64_t tokens_that_fit(const MemoryNeed& need, const MemoryRoom& room, std::int64_t max);

// Whole pages of yoke's cache, in bytes.
inline constexpr std::int64_t kCachePageTokens = 16;
constexpr Bytes paged_cache(std::int64_t tokens, Bytes per_token) {
  return Bytes{(tokens + kCachePageTokens - 1) / kCachePageTokens * kCachePageTokens * per_token.value};
}

// The shape of a step of yoke's engine on one of `ranks` ranks.
struct StepShape {
  std::int64_t width = 0;        // of the model
  std::int64_t heads_width = 0;  // heads times head width
  std::int64_t mlp_width = 0;
  std::int64_t vocabulary = 0;
  int ranks = 1;
  std::int64_t chunk_tokens = 512;  // of prompts in one step
  std::int64_t sequences = 64;      // in one step
};
// The largest of what one step has at a time, in f32: x, its norm, q, k, v and their sum, or gate, up and down; and a
// row of logits for each sequence.
Bytes step_work_space(const StepShape& shape);

}  // namespace yoke::spec
