#include "yoke/cli/why_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "yoke/base/error.h"
#include "yoke/base/interrupt.h"
#include "yoke/base/result.h"
#include "yoke/cli/cluster_file.h"
#include "yoke/cli/plan_input.h"
#include "yoke/cli/why_question.h"
#include "yoke/watch/board.h"

namespace yoke::cli {
namespace {

using namespace literals;

constexpr Seconds kReachTime{5};  // until nodes have sent their first samples

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  void add(const std::optional<double>& value) {
    if (value) add(*value);
  }
  void add(const std::optional<std::int64_t>& value) {
    if (value) add(static_cast<double>(*value));
  }
  std::optional<double> value() const { return count > 0 ? std::optional(sum / count) : std::nullopt; }
};

struct RailMeans {
  Mean bytes;
  double errors = 0, retransmits = 0, discards = 0;
  bool is_up = true;
  std::string rail;
};
struct GpuMeans {
  Mean busy, held;
  std::vector<std::string> limits;
};

// Sums of all samples of a watch.
class EngineSums {
 public:
  void take(const watch::Board& board, std::size_t place) {
    const watch::BoardNode& node = board.nodes()[place];
    if (!node.sample) return;
    if (first_ == 0) first_ = board.now();
    last_ = board.now();
    cpu_[node.name].add(node.rates.cpu_busy);
    memory_[node.name].add(node.rates.memory_full);
    take_rails(node);
    take_gpus(node);
    take_engine(node);
  }

  bool has_engine() const { return engine_.has_value(); }
  std::string kind() const { return engine_->kind; }
  std::string model() const { return engine_->model.value_or(""); }

  why::EngineQuestion question() const {
    why::EngineQuestion question;
    question.engine = {.kind = engine_->kind,
                       .model = model(),
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

 private:
  void take_rails(const watch::BoardNode& node) {
    for (const watch::BoardRail& rail : node.rails) {
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
  void take_gpus(const watch::BoardNode& node) {
    for (std::size_t i = 0; i < node.sample->gpus.size(); ++i) {
      const watch::GpuSample& gpu = node.sample->gpus[i];
      GpuMeans& means = gpus_[{node.name, gpu.index}];
      if (gpu.utilization_percent) means.busy.add(*gpu.utilization_percent);
      if (i < node.rates.gpus.size()) {
        const watch::GpuRates& rates = node.rates.gpus[i];
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
  void take_engine(const watch::BoardNode& node) {
    for (std::size_t i = 0; i < node.sample->engines.size(); ++i) {
      const watch::EngineSample& engine = node.sample->engines[i];
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

  double first_ = 0, last_ = 0;
  std::optional<watch::EngineSample> engine_;
  std::string engine_node_;
  Mean running_, waiting_, cache_, prompts_, made_;
  watch::Total preempted_first_, preempted_last_;
  std::map<std::string, Mean> cpu_, memory_;
  std::map<std::pair<std::string, std::string>, RailMeans> rails_;
  std::map<std::pair<std::string, int>, GpuMeans> gpus_;
};

plan::Engine planned_engine_of(const std::string& kind) {
  if (kind == "yoke") return plan::Engine::kYoke;
  if (kind == "sglang") return plan::Engine::kSglang;
  return kind == "llama-server" ? plan::Engine::kLlamaCpp : plan::Engine::kVllm;
}

why::PlannedEngine plan_engine(const Session& session, const WhyEngineAsked& asked, const why::WatchedEngine& engine) {
  const PlannedModel model = read_planned_model(asked.model.empty() ? engine.model : asked.model);
  if (!model.language) throw Error(ErrorCode::kUnsupported, "not a language model");
  plan::Request request;
  request.model = *model.language;
  const plan::WeightFormat* const format = asked.format.empty() ? model.format : plan::find_format(asked.format);
  request.format = format != nullptr ? *format : *plan::find_format("bf16");
  request.file_bytes = model.file_bytes;
  // Without a cluster file it is this machine that is watched.
  const bool has_cluster = find_cluster_file(session).has_value();
  request.machines = read_machines(session, {.on = has_cluster ? std::nullopt : std::optional<std::string>("here")});
  request.engine = planned_engine_of(engine.kind);
  request.concurrency = std::max(1.0, engine.running.value_or(1));
  const plan::Plan made = plan::make_plan(request, plan::shipped_constants());
  if (!made.fits || made.layouts.empty()) throw Error(ErrorCode::kUnsupported, "the plan says it does not fit");
  why::PlannedEngine planned;
  for (const plan::TimeShare& share : made.step) {
    if (share.part == "weights" || share.part == "arithmetic") planned.step.weights += share.seconds;
    if (share.part == "cache") planned.step.cache = share.seconds;
    if (share.part == "launches") planned.step.fixed = share.seconds;
    if (share.part == "exchange") planned.step.exchange = share.seconds;
    if (share.part == "other prompts") planned.prompts = share.seconds;
  }
  for (const plan::Estimate& estimate : made.estimates) {
    if (estimate.name.starts_with("decode")) {  // that of several requests comes last
      planned.rate = estimate.value;
      planned.low = estimate.low;
      planned.high = estimate.high;
    }
    if (estimate.name == "prefill") planned.prefill_rate = estimate.value;
  }
  return planned;
}

}  // namespace

why::EngineQuestion watch_engine(const Session& session, const WhyEngineAsked& asked) {
  OpenedWatch opened = open_watch(session, asked.input);
  watch::Board board(opened.plan);
  EngineSums sums;
  Deadline deadline = Deadline::after(std::min(asked.input.reach_limit(), asked.time + kReachTime));
  bool has_begun = false;
  while (!opened.source->at_end() && !deadline.expired()) {
    throw_if_interrupted();
    const auto observation = opened.source->next(Deadline::after(0.1_s));
    if (!observation) continue;
    board.take(*observation);
    sums.take(board, observation->node);
    if (!has_begun && sums.has_engine() && !asked.input.replay) {
      has_begun = true;
      deadline = Deadline::after(asked.time);
    }
    if (asked.input.replay) deadline = Deadline::after(asked.time);
  }
  if (!sums.has_engine()) {
    throw Error(ErrorCode::kNotFound, "no engine answers /metrics on these nodes",
                "start one ('yoke serve', 'yoke launch'), or give its port with --engine-port");
  }
  why::EngineQuestion question = sums.question();
  question.options = session_options(session);
  question.subject =
      fmt::format("{}{} watched for {:.0f} s: {:.3g} tokens/s, {:.1f} requests at once", question.engine.kind,
                  question.engine.model.empty() ? "" : " with " + question.engine.model, question.engine.seconds,
                  question.engine.tokens_per_second, question.engine.running.value_or(0));
  if (const auto planned = try_to([&] { return plan_engine(session, asked, question.engine); })) {
    if (planned->rate > 0 && planned->low > 0) question.planned = *planned;
  } else if (!asked.model.empty()) {
    throw Error(planned.error());
  }
  return question;
}

}  // namespace yoke::cli
