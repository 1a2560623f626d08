#include "yoke/plan/memory.h"
#include "yoke/plan/scales.h"

#include <algorithm>
#include <cmath>

namespace yoke::plan {
namespace {

constexpr double kCollectiveBytes = 0.37e9;  // of one NCCL communicator: 342 to 392 MB (aiconfigurator)

// Keys and values do not split below one head a rank; a latent vector is on every rank.
double cache_share(const ServeCase& c) {
  if (c.model.latent) return 1;
  const auto heads = static_cast<double>(c.model.kv_heads);
  return std::max(1.0, heads / c.layout.tensor) / heads;
}

double weights_of_rank(const ServeCase& c) {
  const ModelCount count = count_model(c.model);
  const double all = weight_bytes(c);
  if (c.layout.experts <= 1) return all / (c.layout.tensor * c.layout.pipeline);
  const double experts = all * static_cast<double>(c.model.experts * count.expert) / static_cast<double>(count.total);
  return (all - experts) / (c.layout.tensor * c.layout.pipeline) + experts / (c.layout.experts * c.layout.pipeline);
}

// A chunk of a prompt in flight: the stream and an MLP's inner values in BF16, and logits of the sequences in FP32.
double work_bytes(const ServeCase& c, double sequences) {
  const auto inner = static_cast<double>(std::max(c.model.mlp_width, c.model.experts_used * c.model.expert_width));
  const double chunk = std::min(c.chunk, std::max(c.context, 1.0));
  return chunk * 2 * (6 * static_cast<double>(c.model.width) + 3 * inner / c.layout.tensor) +
         4 * std::max(sequences, 1.0) * static_cast<double>(c.model.vocabulary) / c.layout.tensor;
}

}  // namespace

double runtime_bytes(Engine engine, const Machines& machines, int ranks) {
  if (machines.kind == HardwareClass::kCpu) return 0.03 * kGiB;  // a program and its threads; no CUDA
  double bytes = 0;
  switch (engine) {
    case Engine::kYoke:
      bytes = 0.5 * kGiB;
      break;
    case Engine::kLlamaCpp:
      bytes = 0.8 * kGiB;
      break;
    case Engine::kVllm:
    case Engine::kSglang:
    case Engine::kTensorRt:
      bytes = 3.5 * kGiB;  // aiconfigurator's figure for everything that is neither weights nor cache
      break;
  }
  return bytes + (ranks > 1 && engine != Engine::kLlamaCpp ? kCollectiveBytes : 0);
}

MemoryUse serve_memory(const ServeCase& c, double tokens, double sequences) {
  const double of_replica = std::ceil(sequences / c.layout.replicas);
  MemoryUse use;
  use.weights = weights_of_rank(c);
  use.cache = of_replica * cache_bytes_held(c, tokens) * cache_share(c) / c.layout.pipeline;
  use.activations = work_bytes(c, of_replica);
  use.runtime = runtime_bytes(c.engine, c.machines, c.layout.ranks());
  use.capacity = c.machines.gpu.memory;
  use.reserve = memory_reserve(c.machines.gpu);
  return use;
}

double longest_context(const ServeCase& c) {
  const auto fits = [&](double tokens) { return serve_memory(c, tokens, c.layout.replicas).fits(); };
  if (!fits(1)) return 0;
  double low = 1;
  double high = 1;
  while (high < 1e9 && fits(high)) {
    low = high;
    high *= 2;
  }
  if (high >= 1e9) return low;
  while (high - low > 16) {
    const double middle = std::floor((low + high) / 2);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

double most_sequences(const ServeCase& c) {
  const MemoryUse one = serve_memory(c, c.context, c.layout.replicas);
  if (!one.fits()) return 0;
  const MemoryUse two = serve_memory(c, c.context, 2.0 * c.layout.replicas);
  const double each = std::max(two.used() - one.used(), 1.0);
  return c.layout.replicas * (1 + std::floor(one.left() / each));
}

}  // namespace yoke::plan
