#include "yoke/plan/memory.h"
#include "yoke/plan/scales.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace yoke::plan {
namespace {

constexpr std::int64_t kContextMax = 1'000'000'000;
constexpr double kCollectiveBytes = 0.37e9;  // of one NCCL communicator: 342 to 392 MB (aiconfigurator)

// Keys and values do not split below one head a rank; a latent vector is on every rank.
double cache_share(const ServeCase& c) {
  if (c.model.latent) return 1;
  const auto heads = static_cast<double>(c.model.kv_heads);
  return std::max(1.0, heads / c.layout.tensor) / heads;
}

Bytes to_bytes(double bytes) { return Bytes{static_cast<std::int64_t>(std::clamp(std::ceil(bytes), 0.0, 1e18))}; }

// What the engine counted of each stage by the files; empty where it did not.
std::vector<const RankWeights*> counted_stages(const ServeCase& c) {
  std::vector<const RankWeights*> stages;
  for (const RankWeights& packed : c.rank_weights) {
    if (packed.ranks == c.layout.tensor && packed.stages == c.layout.pipeline) stages.push_back(&packed);
  }
  return stages;
}

// Of all layers, what the largest stage has. yoke's engine gives whole layers.
double layers_part(const ServeCase& c) {
  const auto layers = static_cast<double>(c.model.layers);
  if (c.engine != Engine::kYoke || layers < 1) return 1.0 / c.layout.pipeline;
  return std::ceil(layers / c.layout.pipeline) / layers;
}

double weights_of_rank(const ServeCase& c) {
  const spec::ModelCount count = spec::count_model(c.model);
  const double all = weight_bytes(c);
  const double part = layers_part(c);
  if (c.layout.experts <= 1) return all * part / c.layout.tensor;
  const double experts = all * static_cast<double>(c.model.experts * count.expert) / static_cast<double>(count.total);
  return (all - experts) * part / c.layout.tensor + experts * part / c.layout.experts;
}

// A chunk of a prompt in flight: the stream and an MLP's inner values in BF16, and logits of the sequences in FP32.
// yoke's engine counts its own step, in FP32, for as many sequences as it takes.
double work_bytes(const ServeCase& c, double sequences) {
  if (c.engine == Engine::kYoke) {
    const spec::ModelFacts& m = c.model;
    return static_cast<double>(
        spec::step_work_space({.width = m.width,
                               .heads_width = m.heads * m.head_width,
                               .mlp_width = std::max(m.mlp_width, m.experts_used * m.expert_width),
                               .vocabulary = m.vocabulary,
                               .ranks = c.layout.tensor})
            .value);
  }
  const auto inner = static_cast<double>(std::max(c.model.mlp_width, c.model.experts_used * c.model.expert_width));
  const double chunk = std::min(c.chunk, std::max(c.context, 1.0));
  return chunk * 2 * (6 * static_cast<double>(c.model.width) + 3 * inner / c.layout.tensor) +
         4 * std::max(sequences, 1.0) * static_cast<double>(c.model.vocabulary) / c.layout.tensor;
}

// Of the rank with most to hold of each stage whose size is known, for so many sequences of a replica.
std::vector<MemoryUse> stage_memory(const ServeCase& c, double tokens, double sequences) {
  const double cache = sequences * cache_bytes_held(c, tokens) * cache_share(c);
  const double runtime = runtime_bytes(c.engine, c.machines, c.layout.ranks());
  std::vector<MemoryUse> uses;
  for (const RankWeights* counted : counted_stages(c)) {
    MemoryUse use{.weights = counted->bytes, .cache = cache * counted->layers_part, .runtime = runtime};
    use.activations = counted->work_space > 0 ? counted->work_space : work_bytes(c, sequences);
    uses.push_back(use);
  }
  if (uses.empty()) {
    uses.push_back({.weights = weights_of_rank(c),
                    .cache = cache * layers_part(c),
                    .activations = work_bytes(c, sequences),
                    .runtime = runtime});
  }
  for (MemoryUse& use : uses) evaluate_memory(use, c.machines.gpu);
  return uses;
}

}  // namespace

double runtime_bytes(Engine engine, const Machines& machines, int ranks) {
  // Without CUDA a program and its threads are all there is; yoke's own are inside what is measured as taken.
  if (machines.kind == HardwareClass::kCpu) return engine == Engine::kYoke ? 0 : 0.03 * kGiB;
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

void evaluate_memory(MemoryUse& use, const GpuModel& gpu) {
  const Bytes cache = to_bytes(use.cache);
  const spec::MemoryFit fit = spec::fit_memory({.weights = to_bytes(use.weights),
                                                .work_space = to_bytes(use.activations),
                                                .others = to_bytes(use.gradients + use.optimizer + use.runtime),
                                                .cache = [cache](std::int64_t) { return cache; }},
                                               {.available = to_bytes(gpu.memory), .kind = gpu.kind}, 0);
  use.capacity = gpu.memory;
  use.reserve = static_cast<double>(fit.reserve.value);
  use.remaining = static_cast<double>(fit.left.value);
}

MemoryUse serve_memory(const ServeCase& c, double tokens, double sequences) {
  std::optional<MemoryUse> tightest;
  for (const MemoryUse& use : stage_memory(c, tokens, std::ceil(sequences / c.layout.replicas))) {
    if (!tightest || use.left() < tightest->left()) tightest = use;
  }
  return *tightest;
}

double longest_context(const ServeCase& c) {
  const spec::MemoryRoom room{.available = to_bytes(c.machines.gpu.memory), .kind = c.machines.gpu.kind};
  std::int64_t longest = kContextMax;
  const std::vector<MemoryUse> stages = stage_memory(c, 1, 1);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const MemoryUse& one = stages[stage];
    const spec::MemoryNeed need{.weights = to_bytes(one.weights),
                                .work_space = to_bytes(one.activations),
                                .others = to_bytes(one.runtime),
                                .cache = [&](std::int64_t tokens) {
                                  return to_bytes(stage_memory(c, static_cast<double>(tokens), 1)[stage].cache);
                                }};
    longest = std::min(longest, spec::tokens_that_fit(need, room, longest));
  }
  return static_cast<double>(longest);
}

double most_sequences(const ServeCase& c) {
  const MemoryUse one = serve_memory(c, c.context, c.layout.replicas);
  if (!one.fits()) return 0;
  const MemoryUse two = serve_memory(c, c.context, 2.0 * c.layout.replicas);
  const double each = std::max(two.used() - one.used(), 1.0);
  return c.layout.replicas * (1 + std::floor(one.left() / each));
}

}  // namespace yoke::plan
