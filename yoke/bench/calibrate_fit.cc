// From samples to constants: the fit turns the planner's own formulas round.
#include <algorithm>
#include <cmath>

#include "yoke/bench/calibrate.h"
#include "yoke/bench/sampled_formats.h"
#include "yoke/plan/planner.h"

namespace yoke::bench {
namespace {

constexpr double kMicroseconds = 1e6;
constexpr double kMinTime = 1e-7;  // seconds; what cannot be told from nothing
// Of memory's bandwidth: the range in which rates and efficiencies are looked for. Caches are faster than memory.
constexpr double kMinShare = 1e-4;
constexpr double kMaxShare = 50;
constexpr double kMaxEfficiency = 8;
constexpr double kMinCacheEfficiency = 0.02;

std::string_view format_name(const EngineSample& sample) {
  for (const SampledFormat& of : sampled_formats()) {
    if (of.format == sample.format && of.int4_group == sample.int4_group) return of.name;
  }
  return "bf16";
}

// The sample as a question to the planner: the fit turns its own formulas round, so that both agree.
plan::ServeCase case_of(const EngineSample& sample, const plan::Machines& machines) {
  plan::ServeCase c;
  c.model = spec::facts_of_shape(shape_of(sample));
  c.format = *plan::find_format(format_name(sample));
  c.engine = plan::Engine::kYoke;
  c.machines = machines;
  c.layout = {.tensor = sample.ranks};
  c.context = static_cast<double>(sample.prompt + sample.answer / 2);
  c.cache_bytes = 2;
  c.chunk = static_cast<double>(sample.prompt);
  return c;
}

plan::Machines machines_measured(const CalibrationSamples& samples) {
  plan::Machines machines = plan::machines_of(*spec::find_hardware_facts("cpu"), std::max(samples.nodes, 1));
  machines.gpu.bandwidth = samples.bandwidth;
  machines.gpu.bf16 = machines.gpu.fp8 = samples.arithmetic;
  return machines;
}

// Finds the value with which the formula gives what was measured. `seconds` falls as the value grows.
template <class Formula>
double solved(double low, double high, double measured, const Formula& seconds) {
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (seconds(middle) > measured ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

// Calls in a row reach the limit of a link at sizes where the engine's, with a layer between them, do not: these take
// no longer than the shortest and their bytes at the rate of the longest.
std::vector<plan::CurvePoint> unhurried_curve(std::vector<plan::CurvePoint> curve) {
  for (plan::CurvePoint& point : curve) {
    const double at_full_rate = point.bytes / curve.back().bytes * curve.back().seconds;
    point.seconds = std::min(point.seconds, curve.front().seconds + at_full_rate);
  }
  return curve;
}

// Moved so that the engine's own size takes what a layer of the engine was seen to wait.
std::vector<plan::CurvePoint> moved_curve(std::vector<plan::CurvePoint> curve, double engine_seconds,
                                          double engine_bytes) {
  if (curve.empty() || engine_seconds <= 0) return curve;
  const double moved = engine_seconds - plan::curve_seconds(curve, engine_bytes);
  for (plan::CurvePoint& point : curve) point.seconds = std::max(point.seconds + moved, kMinTime);
  return curve;
}

// Everything over ranks is taken from samples over ranks, so that plans of that many ranks reproduce them: what one
// rank alone shows only divides a layer's time between computing and waiting.
class Fit {
 public:
  Fit(const CalibrationSamples& samples, std::vector<plan::CurvePoint> all_reduce)
      : samples_(samples), bare_(unhurried_curve(std::move(all_reduce))), machines_(machines_measured(samples)) {
    if (bare_.empty()) bare_ = {{.bytes = 256, .seconds = kMinTime}};
    machines_.measured = plan::Calibration{.nodes = samples.nodes, .all_reduce = bare_};
  }

  void run() {
    for (int round = 0; round < 4; ++round) {  // fixed times, weights and cache each leave something to the others
      fit_fixed();
      for (const SampledFormat& of : sampled_formats()) fit_reads(of);
      fit_cache();
    }
    for (const SampledFormat& of : sampled_formats()) fit_prefill(of);
  }

  const std::vector<plan::MeasuredConstant>& constants() const { return constants_; }
  const std::vector<plan::ReadRate>& reads() const { return machines_.measured->reads; }
  const std::vector<plan::CurvePoint>& all_reduce() const { return machines_.measured->all_reduce; }

 private:
  void keep(plan::Constant id, double value) {
    k_.set(id, value);
    const std::string name(plan::row_of(id).name);
    const auto known = std::find_if(constants_.begin(), constants_.end(),
                                    [&](const plan::MeasuredConstant& one) { return one.name == name; });
    if (known == constants_.end()) {
      constants_.push_back({name, value});
    } else {
      known->value = value;
    }
  }

  // Of a layer and of a step, beside their weights: two models that have next to none.
  struct Fixed {
    double layer = 0;
    double step = 0;
  };
  std::optional<Fixed> fixed_of(int ranks) const {
    const EngineSample* const one = find_sample(samples_, "one layer", ranks);
    const EngineSample* const many = find_sample(samples_, "many layers", ranks);
    if (one == nullptr || many == nullptr) return std::nullopt;
    const double layer =
        (beside_weights(*many) - beside_weights(*one)) / static_cast<double>(many->layers - one->layers);
    const double kept = std::max(layer, 3 * kMinTime);
    return Fixed{.layer = kept, .step = std::max(beside_weights(*one) - kept, 2 * kMinTime)};
  }
  double beside_weights(const EngineSample& sample) const {
    const plan::StepTime step = plan::decode_step(case_of(sample, machines_), k_);
    return sample.step - step.weights - step.cache;
  }

  void fit_fixed() {
    auto alone = fixed_of(1);
    if (!alone) return;
    if (const auto together = samples_.nodes > 1 ? fixed_of(samples_.nodes) : std::nullopt) {
      alone->layer = std::min(alone->layer, together->layer - 2 * kMinTime);
      alone->step = std::min(alone->step, together->step - kMinTime);
      const EngineSample& narrow = *find_sample(samples_, "one layer", samples_.nodes);
      machines_.measured->all_reduce =
          moved_curve(bare_, (together->layer - alone->layer) / 2, 4.0 * static_cast<double>(narrow.width));
      keep(plan::Constant::kStepCpuRanks, (together->step - alone->step) * kMicroseconds);
    }
    keep(plan::Constant::kLayerCpu, alone->layer * kMicroseconds);
    keep(plan::Constant::kStepCpu, alone->step * kMicroseconds);
  }

  // The rate at each size of this format; the largest stands for all that are larger.
  void fit_reads(const SampledFormat& of) {
    const std::string name(plan::row_of(of.bandwidth).name);
    std::vector<plan::ReadRate>& reads = machines_.measured->reads;
    std::erase_if(reads, [&](const plan::ReadRate& read) { return read.constant == name; });
    for (const SampleSize size : {SampleSize::kSmall, SampleSize::kMiddle, SampleSize::kLarge}) {
      const EngineSample* const sample = find_sample(samples_, sample_name(of.name, size), samples_.nodes);
      if (sample == nullptr) continue;
      plan::ServeCase c = case_of(*sample, machines_);
      const double bytes = plan::rank_bytes(c, k_);
      c.machines.measured->reads.push_back({.constant = name, .bytes = bytes, .rate = samples_.bandwidth});
      double& rate = c.machines.measured->reads.back().rate;
      rate = solved(kMinShare * samples_.bandwidth, kMaxShare * samples_.bandwidth, sample->step, [&](double tried) {
        rate = tried;
        return plan::decode_step(c, k_).total();
      });
      reads.push_back({.constant = name, .bytes = bytes, .rate = rate});
      keep(of.bandwidth, std::min(rate / samples_.bandwidth, kMaxEfficiency));
    }
  }

  void fit_cache() {
    const EngineSample* const sample = find_sample(samples_, "long context", samples_.nodes);
    if (sample == nullptr) return;
    const plan::ServeCase c = case_of(*sample, machines_);
    keep(plan::Constant::kEtaCpuCache, solved(kMinCacheEfficiency, kMaxEfficiency, sample->step, [&](double tried) {
           k_.set(plan::Constant::kEtaCpuCache, tried);
           return plan::decode_step(c, k_).total();
         }));
  }

  void fit_prefill(const SampledFormat& of) {
    const EngineSample* sample = find_sample(samples_, sample_name(of.name, SampleSize::kLarge), samples_.nodes);
    if (sample == nullptr) sample = find_sample(samples_, sample_name(of.name, SampleSize::kSmall), samples_.nodes);
    if (sample == nullptr || !of.prefill) return;
    const plan::ServeCase c = case_of(*sample, machines_);
    const auto prompt = static_cast<double>(sample->prompt);
    keep(*of.prefill, solved(1e-6, kMaxEfficiency, sample->prefill, [&](double tried) {
      k_.set(*of.prefill, tried);
      return plan::prefill_seconds(c, prompt, 0, k_);
    }));
  }

  const CalibrationSamples& samples_;
  std::vector<plan::CurvePoint> bare_;
  plan::Machines machines_;
  plan::Constants k_ = plan::shipped_constants();
  std::vector<plan::MeasuredConstant> constants_;
};

// An all-reduce takes no longer than one of more bytes: where it seems to, other programs were in the way.
std::vector<plan::CurvePoint> measured_curve(const CollectiveRun& run) {
  std::vector<plan::CurvePoint> curve;
  for (const CollectiveRow& row : run.rows) {
    const double seconds = row.out_of_place.stats.p50 / kMicroseconds;
    if (seconds <= 0 || (!curve.empty() && static_cast<double>(row.size) <= curve.back().bytes)) continue;
    curve.push_back({.bytes = static_cast<double>(row.size), .seconds = seconds});
  }
  for (std::size_t i = curve.size(); i-- > 1;) {
    curve[i - 1].seconds = std::min(curve[i - 1].seconds, curve[i].seconds);
  }
  return curve;
}

}  // namespace

plan::Calibration calibration_of(const CalibrationSamples& samples, const std::optional<CollectiveRun>& all_reduce) {
  const std::vector<plan::CurvePoint> bare = all_reduce ? measured_curve(*all_reduce) : std::vector<plan::CurvePoint>{};
  const bool is_nccl = all_reduce && all_reduce->transport.starts_with("nccl");
  Fit fit(samples, is_nccl ? std::vector<plan::CurvePoint>{} : bare);  // the engine's samples do not use NCCL
  fit.run();
  plan::Calibration calibration{.backend = samples.backend,
                                .nodes = samples.nodes,
                                .threads = samples.threads,
                                .memory = samples.memory,
                                .bandwidth = samples.bandwidth,
                                .arithmetic = samples.arithmetic,
                                .constants = fit.constants(),
                                .reads = fit.reads()};
  if (all_reduce) {
    calibration.transport = is_nccl ? "nccl" : "direct";
    calibration.all_reduce_bare = bare;
    calibration.all_reduce = is_nccl ? bare : fit.all_reduce();
  }
  return calibration;
}

std::optional<CalibrationCheck> check_calibration(const CalibrationSamples& samples,
                                                  const plan::Calibration& calibration) {
  const EngineSample* const sample = find_sample(samples, "check", samples.nodes);
  if (sample == nullptr || sample->step <= 0) return std::nullopt;
  plan::Machines machines = plan::machines_of(*spec::find_hardware_facts("cpu"), calibration.nodes);
  plan::calibrate(calibration, machines);
  plan::Constants k = plan::shipped_constants();
  plan::set_measured(k, calibration);
  return CalibrationCheck{.predicted = plan::decode_rate(case_of(*sample, machines), k), .measured = 1 / sample->step};
}

}  // namespace yoke::bench
