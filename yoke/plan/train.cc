#include "yoke/plan/train.h"
#include "yoke/plan/scales.h"

#include <algorithm>
#include <cmath>

namespace yoke::plan {
namespace {

constexpr double kOverlap = 0.9;        // of gradient and parameter traffic hides behind arithmetic
constexpr double kTensorOverlap = 0.8;  // of all-reduces inside a machine
constexpr double kLoraShare = 0.005;    // of the parameters, adapters of usual rank
constexpr double kAdapterBytes = 18;    // of one adapter parameter in training

double parameters(const TrainCase& c) { return static_cast<double>(spec::count_model(c.model).total); }

double mixed_precision_rate(const TrainCase& c, const Constants& k) {
  const GpuModel& gpu = c.machines.gpu;
  if (c.machines.kind == HardwareClass::kGb10) {
    return k[c.tuning == Tuning::kLora ? Constant::kTrainLoraGb10 : Constant::kTrainGb10] * kTera;
  }
  double rate = 0;
  if (c.trainer == Trainer::kTorchTitan) {
    rate = k[Constant::kTrainTitan] * (c.arithmetic == Arithmetic::kFp8 ? gpu.fp8 : 1.5 * gpu.bf16);
    if (c.layout.pipeline > 1) rate *= k[Constant::kTrainTitanPipeline];
  } else if (c.arithmetic == Arithmetic::kFp4 && gpu.fp4 > 0) {
    rate = k[Constant::kTrainFp4] * gpu.fp4;
  } else if (c.arithmetic == Arithmetic::kFp8 && gpu.fp8 > 0) {
    const Constant mfu = c.machines.kind == HardwareClass::kHopper      ? Constant::kTrainFp8Hopper
                         : c.machines.kind == HardwareClass::kBlackwell ? Constant::kTrainFp8Blackwell
                                                                        : Constant::kTrainFp8BlackwellUltra;
    rate = k[mfu] * gpu.fp8;
  } else {
    rate = k[Constant::kTrainBf16] * gpu.bf16;
  }
  // Small expert matrices leave FP8 units idle: mixtures train at a fraction of the BF16 peak whatever the format.
  if (c.model.experts > 0) {
    const bool is_hopper = c.machines.kind == HardwareClass::kHopper || c.machines.kind == HardwareClass::kOtherGpu;
    rate = k[is_hopper ? Constant::kTrainMixtureHopper : Constant::kTrainMixtureBlackwell] * gpu.bf16;
  }
  return rate * c.power_factor;
}

// Gradients and parameters of one rank's shard, between its replicas. Ranks of one machine that hold different shards
// share its rails.
double replica_seconds(const TrainCase& c, double bytes, const Constants& k) {
  const int per_node = c.machines.gpus_per_node;
  const int shards = std::min(c.layout.tensor * c.layout.pipeline, per_node);
  const int inside = std::clamp(per_node / shards, 1, c.layout.replicas);
  const int nodes = (c.layout.replicas + inside - 1) / inside;
  double seconds = 0;
  if (inside > 1) seconds = gather_seconds(c.machines, {.nodes = 1, .per_node = inside}, bytes, k);
  if (nodes > 1) {
    seconds = std::max(seconds, gather_seconds(c.machines, {.nodes = nodes, .per_node = 1}, bytes * shards, k));
  }
  return seconds;
}

// Passes over the parameters: forward 2, backward 4; frozen weights need no weight gradients; recomputing is one more
// forward.
double passes(const TrainCase& c) {
  double flops = c.tuning == Tuning::kLora ? 4 : 6;
  if (c.recompute == Recompute::kFull) flops += 2;
  return flops;
}

}  // namespace

double TrainCase::microbatches() const {
  if (global_batch <= 0) return 8.0 * layout.pipeline;
  return std::max(global_batch / (layout.replicas * micro_batch), 1.0);
}

double activation_bytes_per_layer(const TrainCase& c) {
  const double s = c.sequence / c.context_ranks;
  const double b = c.micro_batch;
  const auto h = static_cast<double>(c.model.width);
  const auto a = static_cast<double>(c.model.heads);
  const double t = c.layout.tensor;
  if (c.recompute == Recompute::kFull) return 2 * s * b * h / (c.sequence_parallel ? t : 1);
  if (c.recompute == Recompute::kNone) {
    const double scores = 5 * a * s / h;
    return c.sequence_parallel ? s * b * h / t * (34 + scores) : s * b * h * (10 + 24 / t + scores / t);
  }
  if (!c.model.gated) return c.sequence_parallel ? 34 * s * b * h / t : s * b * h * (10 + 24 / t);
  // A gated MLP and grouped heads: inputs and outputs of each matrix, two bytes each.
  const auto q = static_cast<double>(c.model.heads * c.model.head_width);
  const auto kv = static_cast<double>(c.model.kv_heads * c.model.head_width);
  double f = static_cast<double>(c.model.mlp_width);
  if (c.model.experts > 0) {
    f = static_cast<double>(c.model.experts_used * c.model.expert_width +
                            c.model.shared_experts * std::max(c.model.shared_width, c.model.expert_width));
  }
  const double split = 2 * s * b * (2 * q + 2 * kv + 3 * f) / t;
  const double whole = 2 * s * b * 4 * h / (c.sequence_parallel ? t : 1);
  return split + whole;
}

double held_layers(const TrainCase& c) {
  const double p = c.layout.pipeline;
  const double per_stage = static_cast<double>(c.model.layers) / p;
  if (c.layout.pipeline == 1) return per_stage;
  const double v = c.virtual_stages;
  const double interleaved = v > 1 ? 1 + (p - 1) / (p * v) : 1;
  return per_stage * std::min(c.microbatches(), p) * interleaved;
}

TrainMemory train_memory(const TrainCase& c) {
  TrainMemory memory;
  const double n = parameters(c) / (c.layout.tensor * c.layout.pipeline);
  const double d = c.layout.replicas * c.context_ranks;
  if (c.tuning == Tuning::kLora) {
    memory.weights = c.base_bytes * n / (c.sharding == Sharding::kAll ? d : 1);
    memory.optimizer = kAdapterBytes * kLoraShare * n;
  } else {
    // Megatron keeps FP32 gradients: 2 + 4, and 12 of the optimizer (FP32 weights, two moments).
    const double all = c.sharding == Sharding::kAll ? d : 1;
    memory.weights = 2 * n / all;
    memory.gradients = (c.sharding == Sharding::kAll ? 2 : 4) * n / all;
    memory.optimizer = 12 * n / (c.sharding == Sharding::kNone ? 1 : d);
    if (c.sharding == Sharding::kAll) {
      memory.weights += 2 * 2 * n / static_cast<double>(std::max<std::int64_t>(c.model.layers / c.layout.pipeline, 1));
    }
  }
  memory.activations = activation_bytes_per_layer(c) * held_layers(c);
  if (c.layout.pipeline == 1) {
    memory.logits = 4 * c.sequence / c.context_ranks * c.micro_batch *
                    static_cast<double>(c.model.width + c.model.vocabulary / c.layout.tensor);
  }
  return memory;
}

double train_flop_per_token(const TrainCase& c) {
  const spec::ModelCount count = spec::count_model(c.model);
  const auto reach = static_cast<double>(c.model.layers * c.model.heads * (c.model.latent ? 192 : c.model.head_width));
  return 6 * static_cast<double>(count.matmul()) + 6 * reach * c.sequence;
}

TrainTime train_time(const TrainCase& c, const Constants& k) {
  const spec::ModelCount count = spec::count_model(c.model);
  const double rate = mixed_precision_rate(c, k);
  TrainTime time;
  time.arithmetic = passes(c) * static_cast<double>(count.matmul()) / rate;
  const double shape = static_cast<double>(c.model.layers * c.model.heads * c.model.head_width) * c.sequence;
  if (c.machines.kind == HardwareClass::kGb10) {
    time.attention = passes(c) * shape / rate;
  } else {
    // Attention runs in BF16 also where matrices are FP8.
    time.attention = passes(c) * shape / (k[Constant::kTrainAttention] * c.machines.gpu.bf16 * c.power_factor);
  }
  const double p = c.layout.pipeline;
  const double m = c.microbatches();
  const double busy = time.arithmetic + time.attention;
  if (c.layout.pipeline > 1) time.bubble = busy * (p - 1) / (m * c.virtual_stages);
  // Gradients (and parameters, where sharded) cross between the replicas once a step.
  if (c.layout.replicas > 1) {
    const double trained = c.tuning == Tuning::kLora ? kLoraShare : 1;
    const double n = trained * static_cast<double>(count.total) / (c.layout.tensor * c.layout.pipeline);
    const double volume = (c.sharding == Sharding::kAll ? 6 : 4) * n;  // reduce-scatter and gathers, two bytes each
    const double seconds = replica_seconds(c, volume, k);
    const double tokens = m * c.micro_batch * c.sequence / (c.layout.tensor * c.layout.pipeline * c.context_ranks);
    const double hidden = kOverlap * busy * tokens;
    time.exchange += std::max(seconds - hidden, 0.0) / tokens;
  }
  // Tensor parallelism: four all-reduces a layer. Inside a machine most of it overlaps with matrices; between machines
  // there is nothing long enough to hide behind.
  if (c.layout.tensor > 1) {
    const Group tensor = group_of(c.machines, c.layout.tensor);
    const double tokens = c.micro_batch * c.sequence / c.context_ranks;
    const double bytes = 2 * tokens * static_cast<double>(c.model.width);
    const double shown = tensor.nodes > 1 ? 1 : 1 - kTensorOverlap;
    time.exchange += shown * 4 * static_cast<double>(c.model.layers) *
                     all_reduce_seconds(c.machines, tensor, bytes, k) * c.layout.tensor / tokens;
  }
  return time;
}

double train_rate_per_gpu(const TrainCase& c, const Constants& k) { return 1 / train_time(c, k).total(); }

}  // namespace yoke::plan
