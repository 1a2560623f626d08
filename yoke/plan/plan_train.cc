// Training: search over tensor x pipeline x data parallelism, sharding, recomputation and micro-batch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/plan/planner.h"
#include "yoke/plan/scales.h"

namespace yoke::plan {
namespace {

constexpr double kTrainerBytes = 4 * kGiB;  // CUDA context, NCCL buffers, fragments of the allocator

struct TrainScore {
  TrainCase c;
  MemoryUse memory;
  double rate = 0;  // of all GPUs
};

MemoryUse use_of(const TrainCase& c) {
  const TrainMemory train = train_memory(c);
  MemoryUse use;
  use.weights = train.weights;
  use.gradients = train.gradients;
  use.optimizer = train.optimizer;
  use.activations = train.activations + train.logits;
  use.runtime = kTrainerBytes;
  evaluate_memory(use, c.machines.gpu);
  return use;
}

TrainCase base_case(const Request& request) {
  TrainCase c;
  c.model = request.model;
  c.arithmetic = request.format.arithmetic;
  c.tuning = request.tuning;
  c.machines = request.machines;
  c.sequence = request.sequence;
  c.global_batch = request.global_batch;
  // Weights of a frozen model may stay quantized.
  c.base_bytes = request.format.linear_bits / 8;
  return c;
}

std::string_view name_of(Sharding sharding) {
  for (const auto& [name, value] : enum_names(sharding)) {
    if (value == sharding) return name;
  }
  return "";
}
std::string_view name_of(Recompute recompute) {
  for (const auto& [name, value] : enum_names(recompute)) {
    if (value == recompute) return name;
  }
  return "";
}

template <class Visit>
void for_each_case(const Request& request, Visit visit) {
  const int gpus = request.machines.gpus();
  for (int tensor = 1; tensor <= std::min(gpus, 64); tensor *= 2) {
    if (gpus % tensor != 0 || request.model.heads % tensor != 0) continue;
    if (request.tensor > 0 && tensor != request.tensor) continue;
    for (int pipeline = 1; pipeline <= std::min<std::int64_t>(gpus / tensor, request.model.layers); ++pipeline) {
      if ((gpus / tensor) % pipeline != 0 || pipeline > 64) continue;
      if (request.pipeline > 0 && pipeline != request.pipeline) continue;
      for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kAll}) {
        for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
          for (const double micro : {1.0, 2.0, 4.0}) {
            TrainCase c = base_case(request);
            c.layout = {.tensor = tensor, .pipeline = pipeline, .replicas = gpus / tensor / pipeline};
            c.sharding = sharding;
            c.recompute = recompute;
            c.micro_batch = micro;
            if (pipeline > 1 && request.model.layers % (2 * pipeline) == 0) c.virtual_stages = 2;
            if (c.global_batch > 0 && c.global_batch < c.layout.replicas * micro) continue;
            visit(c);
          }
        }
      }
    }
  }
}

std::string why_text(const TrainScore& scored, const Constants& k) {
  const TrainTime time = train_time(scored.c, k);
  const double total = time.total();
  return fmt::format("{:.0f}% matrices, {:.0f}% attention, {:.0f}% exchange that does not hide, {:.0f}% bubble",
                     100 * time.arithmetic / total, 100 * time.attention / total, 100 * time.exchange / total,
                     100 * time.bubble / total);
}

PlannedLayout planned_of(const TrainScore& scored, const Constants& k) {
  PlannedLayout planned;
  planned.layout = scored.c.layout;
  planned.name = layout_name(scored.c.layout);
  planned.memory = scored.memory;
  planned.score = scored.rate;
  planned.why = why_text(scored, k);
  planned.sharding = std::string(name_of(scored.c.sharding));
  planned.recompute = std::string(name_of(scored.c.recompute));
  planned.micro_batch = scored.c.micro_batch;
  return planned;
}

// The largest power of two that fits, of something that grows the activations; 0 where not even one does.
template <class Grow>
double largest_that_fits(TrainCase c, double most, const Grow& grow) {
  double largest = 0;
  for (double size = 1; size <= most; size *= 2) {
    grow(c, size);
    if (!use_of(c).fits()) break;
    largest = size;
  }
  return largest;
}

void add_train_estimates(Plan& plan, const Request& request, const TrainScore& best, const Constants& k) {
  const double doubt = doubt_of(request);
  const double peak = peak_rate(request.machines.gpu, request.format.arithmetic);
  k.forget_used();
  const double rate = train_rate_per_gpu(best.c, k) * request.machines.gpus();
  plan.estimates.push_back(estimate_of("training", rate, "tok/s", "training", doubt, k));
  const double flop = train_flop_per_token(best.c) * rate / request.machines.gpus();
  plan.estimates.push_back(estimate_of("model FLOP/s per GPU, causal", flop / 1e12, "TFLOP/s", "training", doubt, k));
  plan.estimates.push_back(
      estimate_of(fmt::format("MFU of {:.0f} TFLOP/s dense {}", peak / 1e12,
                              request.format.arithmetic == Arithmetic::kBf16 ? "BF16" : request.format.name),
                  100 * flop / peak, "%", "training", doubt, k));
  const spec::HardwareFacts& facts = *request.machines.facts;
  const double watts = request.machines.nodes * facts.load_power.value;
  plan.estimates.push_back(estimate_of("power", watts, "W", "power", 1.2, k));
  plan.estimates.back().provenance = fmt::format("catalogue: {}", facts.load_power.source);
  plan.estimates.push_back(estimate_of("tokens per joule", rate / watts, "tok/J", "power", 1.2 * doubt, k));
  if (request.tokens > 0) {
    const double seconds = request.tokens / rate;
    plan.estimates.push_back(estimate_of(fmt::format("time for {:.3g} tokens", request.tokens), seconds / 86400, "days",
                                         "training", doubt, k));
    plan.estimates.push_back(estimate_of("energy", watts * seconds / 3.6e6, "kWh", "training", 1.2 * doubt, k));
  }
}

}  // namespace

Plan plan_train(const Request& request, const Constants& k) {
  std::vector<TrainScore> fitting;
  std::optional<TrainScore> least_bad;
  for_each_case(request, [&](const TrainCase& c) {
    TrainScore scored{.c = c, .memory = use_of(c), .rate = train_rate_per_gpu(c, k) * request.machines.gpus()};
    if (scored.memory.fits()) {
      fitting.push_back(std::move(scored));
    } else if (!least_bad || scored.memory.left() > least_bad->memory.left()) {
      least_bad = std::move(scored);
    }
  });
  if (fitting.empty() && !least_bad) {
    throw Error(ErrorCode::kUsage,
                fmt::format("no layout of {} GPUs trains {} as asked", request.machines.gpus(), request.model.name),
                "leave out --tp and --pp, or raise --batch to at least the number of replicas");
  }
  Plan plan;
  plan.fits = !fitting.empty();
  // Of equally fast ones the one that leaves most memory free.
  std::stable_sort(fitting.begin(), fitting.end(), [](const TrainScore& a, const TrainScore& b) {
    if (std::abs(a.rate - b.rate) > 0.005 * a.rate) return a.rate > b.rate;
    return a.memory.left() > b.memory.left();
  });
  if (!plan.fits) fitting.push_back(std::move(*least_bad));
  for (const TrainScore& scored : fitting) {
    const bool is_new = std::none_of(plan.layouts.begin(), plan.layouts.end(), [&](const PlannedLayout& shown) {
      return shown.name == layout_name(scored.c.layout);
    });
    if (is_new) plan.layouts.push_back(planned_of(scored, k));
    if (plan.layouts.size() == 3) break;
  }
  const TrainScore& best = fitting.front();
  plan.context = request.sequence;
  plan.sequences_max = largest_that_fits(best.c, 1 << 16, [](TrainCase& c, double size) { c.micro_batch = size; });
  plan.context_max = largest_that_fits(best.c, 1 << 24, [](TrainCase& c, double size) {
    c.micro_batch = 1;
    c.sequence = size;
  });
  const TrainTime time = train_time(best.c, k);
  plan.step = {{"matrices", time.arithmetic},
               {"attention", time.attention},
               {"exchange", time.exchange},
               {"bubble", time.bubble}};
  add_train_estimates(plan, request, best, k);
  if (!plan.fits) {
    plan.changes.push_back(fmt::format("{:.0f} GB are missing on each GPU", -best.memory.left() / 1e9));
    for (int nodes = request.machines.nodes * 2; nodes <= 1024; nodes *= 2) {
      Request wider = request;
      wider.machines.nodes = nodes;
      wider.tensor = wider.pipeline = 0;
      bool fits = false;
      for_each_case(wider, [&](const TrainCase& c) { fits = fits || use_of(c).fits(); });
      if (!fits) continue;
      plan.changes.push_back(fmt::format("--on {}x{}", nodes, request.machines.hardware));
      break;
    }
    if (request.tuning == Tuning::kFull) plan.changes.emplace_back("--lora: trains adapters beside frozen weights");
  }
  if (request.model.experts > 0) {
    plan.guesses.emplace_back("training of mixtures: no published row; a factor of two either way");
  }
  return plan;
}

}  // namespace yoke::plan
