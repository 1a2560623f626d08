#include "yoke/watch/engine_sums.h"

#include <algorithm>

namespace yoke::watch {

void EngineSums::take(const Board& board, std::size_t place) {
  const BoardNode& node = board.nodes()[place];
  if (!node.sample) return;
  if (first_ == 0) first_ = board.now();
  last_ = board.now();
  cpu_[node.name].add(node.rates.cpu_busy);
  memory_[node.name].add(node.rates.memory_full);
  take_rails(node);
  take_gpus(node);
  take_engine(node);
}

why::EngineQuestion EngineSums::question() const {
  why::EngineQuestion question;
  question.engine = {.kind = engine_->kind,
                     .model = engine_->model.value_or(""),
                     .seconds = last_ - first_,
                     .tokens_per_second = made_.value().value_or(0),
                     .is_counted = engine_->generated_tokens || engine_->tokens_per_second,
                     .prompt_tokens_per_second = prompts_.value(),
                     .running = running_.value(),
                     .waiting = waiting_.value(),
                     .cache_usage = cache_.value()};
  if (preempted_first_ && preempted_last_) {
    question.engine.preemptions = static_cast<double>(*preempted_last_ - *preempted_first_);
  }
  for (const auto& [name, busy] : cpu_) {
    const auto memory = memory_.find(name);
    question.nodes.push_back({.name = name,
                              .cpu_busy = busy.value().value_or(0),
                              .memory_full = memory != memory_.end() ? memory->second.value().value_or(0) : 0});
  }
  for (const auto& [key, rail] : rails_) {
    question.rails.push_back({.node = key.first,
                              .rail = rail.rail,
                              .interface = key.second,
                              .is_up = rail.is_up,
                              .bytes_per_second = rail.bytes.value().value_or(0),
                              .errors = rail.errors,
                              .retransmits = rail.retransmits,
                              .discards = rail.discards});
  }
  for (const auto& [key, gpu] : gpus_) {
    question.gpus.push_back({.node = key.first,
                             .index = key.second,
                             .busy = gpu.busy.value().value_or(0) / 100,
                             .held_down = gpu.held.value().value_or(0),
                             .clock_limits = gpu.limits});
  }
  return question;
}

void EngineSums::take_rails(const BoardNode& node) {
  for (const BoardRail& rail : node.rails) {
    if (!rail.is_listed || rail.title.empty()) continue;
    RailMeans& means = rails_[{node.name, rail.interface}];
    means.rail = rail.title;
    means.is_up = rail.sample.up && rail.sample.carrier;
    if (rail.in || rail.out) {
      means.bytes.add(((rail.in ? rail.in->value : 0) + (rail.out ? rail.out->value : 0)) / 8);
    }
    means.errors += rail.rates.errors.value_or(0);
    means.retransmits += rail.rates.retransmits.value_or(0);
    means.discards += rail.rates.discards.value_or(0);
  }
}

void EngineSums::take_gpus(const BoardNode& node) {
  for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
    const GpuSample& gpu = node.sample->gpus[i];
    GpuMeans& means = gpus_[{node.name, gpu.index}];
    if (gpu.utilization_percent) means.busy.add(*gpu.utilization_percent);
    if (i < node.rates.gpus.size()) {
      const GpuRates& rates = node.rates.gpus[i];
      if (rates.thermal_share || rates.power_share) {
        means.held.add(std::max(rates.thermal_share.value_or(0), rates.power_share.value_or(0)));
      }
    }
    for (const std::string& limit : gpu.clock_limits) {
      if (std::ranges::find(means.limits, limit) == means.limits.end()) means.limits.push_back(limit);
    }
  }
}

// The first engine that was seen: an engine on several nodes answers on its head alone.
void EngineSums::take_engine(const BoardNode& node) {
  for (std::size_t i = 0; i < node.sample->engines.size(); ++i) {
    const EngineSample& engine = node.sample->engines[i];
    if (!engine_) engine_node_ = node.name;
    if (node.name != engine_node_ || (engine_ && engine_->port != engine.port)) continue;
    engine_ = engine;
    running_.add(engine.running);
    waiting_.add(engine.waiting);
    cache_.add(engine.cache_usage);
    if (!preempted_first_) preempted_first_ = engine.preemptions;
    preempted_last_ = engine.preemptions;
    if (i >= node.rates.engines.size()) continue;
    prompts_.add(node.rates.engines[i].prompt_tokens);
    const auto made = node.rates.engines[i].generated_tokens;
    made_.add(made ? made : engine.tokens_per_second);
  }
}

}  // namespace yoke::watch
