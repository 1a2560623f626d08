// Training: memory of a rank, FLOP of a token, tokens a second.
#pragma once
#include <array>
#include <string>
#include <utility>

#include "yoke/plan/serve.h"

namespace yoke::plan {

// What of the model's state is spread over the data-parallel ranks.
enum class Sharding { kNone, kOptimizer, kAll };
constexpr auto enum_names(Sharding) {
  return std::array{std::pair{"none", Sharding::kNone}, std::pair{"optimizer", Sharding::kOptimizer},
                    std::pair{"all", Sharding::kAll}};
}
enum class Recompute { kNone, kSelective, kFull };
constexpr auto enum_names(Recompute) {
  return std::array{std::pair{"none", Recompute::kNone}, std::pair{"selective", Recompute::kSelective},
                    std::pair{"full", Recompute::kFull}};
}
enum class Tuning { kFull, kLora };
enum class Trainer { kMegatron, kTorchTitan, kYoke };

struct TrainCase {
  spec::ModelFacts model;
  Arithmetic arithmetic = Arithmetic::kBf16;
  Tuning tuning = Tuning::kFull;
  Trainer trainer = Trainer::kMegatron;
  Machines machines;
  Layout layout;  // replicas are the data-parallel ranks
  int context_ranks = 1;
  int virtual_stages = 1;
  Sharding sharding = Sharding::kOptimizer;
  Recompute recompute = Recompute::kSelective;
  bool sequence_parallel = true;
  double sequence = 4096;
  double micro_batch = 1;
  double global_batch = 0;  // sequences of a step; 0: as many as fill the pipeline
  double power_factor = 1;  // of a GPU whose power is capped
  double base_bytes = 2;    // of one frozen parameter, for LoRA
  double microbatches() const;
};

struct TrainMemory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double logits = 0;
  double total() const { return weights + gradients + optimizer + activations + logits; }
};

TrainMemory train_memory(const TrainCase& c);  // of the first stage's rank, bytes
// Of one layer and micro-batch on one tensor-parallel rank (Korthikanti et al. 2022).
double activation_bytes_per_layer(const TrainCase& c);
// Micro-batches of layers that the first stage holds at once, in layers.
double held_layers(const TrainCase& c);

// 6 FLOP a parameter and token, and causal attention: 6*L*a*d*s.
double train_flop_per_token(const TrainCase& c);

struct TrainTime {
  double arithmetic = 0;  // seconds a token and GPU
  double attention = 0;
  double exchange = 0;  // what does not hide behind arithmetic
  double bubble = 0;
  double total() const { return arithmetic + attention + exchange + bubble; }
};
TrainTime train_time(const TrainCase& c, const Constants& constants);
double train_rate_per_gpu(const TrainCase& c, const Constants& constants);  // tokens/s

}  // namespace yoke::plan
