// What this machine, or this cluster, really does, in the place of the constants that plans ship with: samples of
// memory, arithmetic, all-reduce and yoke's engine, and the calibration (plan/calibration.h) that follows from them.
// Pure; calibrate_ranks.h takes the samples.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/bench/collective_run.h"
#include "yoke/bench/run_record.h"
#include "yoke/plan/calibration.h"
#include "yoke/spec/model_catalogue.h"
#include "yoke/weights/make_model.h"

namespace yoke::bench {

// A made model, and what the engine did with it.
struct EngineSample {
  std::string name;  // "one layer", "bf16, small", …
  weights::MakeFormat format = weights::MakeFormat::kBf16;
  std::int64_t int4_group = 0;  // of int4: weights that share a scale
  int ranks = 1;
  std::int64_t layers = 1;
  std::int64_t width = 64;
  std::int64_t heads = 1;  // of 64 columns; keys and values have as many
  std::int64_t mlp_width = 128;
  std::int64_t prompt = 16;  // tokens
  std::int64_t answer = 32;
  int answers = 8;     // that are timed
  double prefill = 0;  // seconds, of the slowest rank
  double step = 0;     // seconds: the median over answers of the mean
};
spec::ModelShape shape_of(const EngineSample& sample);

struct CalibrationSamples {
  std::string backend;  // of the engine
  int nodes = 1;
  int threads = 0;        // as asked for; 0: the engine's own choice
  double memory = 0;      // bytes available on the node with least
  double bandwidth = 0;   // bytes/s read by all cores of the slowest node, all nodes at once
  double arithmetic = 0;  // FLOP/s likewise
  std::vector<EngineSample> samples;
};
const EngineSample* find_sample(const CalibrationSamples& samples, std::string_view name,
                                int ranks);  // null: not taken
Document to_json(const CalibrationSamples& samples);
void from_json(const Document& document, CalibrationSamples& samples);

// Sizes of the models by which each format is measured: those of a small model lie in caches, those of a large one
// do not.
enum class SampleSize { kSmall, kMiddle, kLarge };
std::string sample_name(std::string_view format, SampleSize size);  // "bf16, small"

// What to measure, in order, on so many nodes. The second list depends on what the first showed: a slow engine is not
// asked for large models. `last_cache` is the processor's largest, in bytes; 0: not known.
std::vector<EngineSample> samples_wanted(int ranks);
std::vector<EngineSample> larger_samples(const CalibrationSamples& so_far, double last_cache);

// Constants from samples, and the all-reduce as the engine sees it: the measured curve, moved by what a layer over
// ranks takes beyond it.
plan::Calibration calibration_of(const CalibrationSamples& samples, const std::optional<CollectiveRun>& all_reduce);

// The sample "check" takes no part in the fit: what the calibrated plan predicts of it.
struct CalibrationCheck {
  double predicted = 0;  // tokens/s
  double measured = 0;
};
std::optional<CalibrationCheck> check_calibration(const CalibrationSamples& samples,
                                                  const plan::Calibration& calibration);

std::string calibration_text(const plan::Calibration& calibration, const std::optional<CalibrationCheck>& check);
RunRecord calibration_record(const plan::Calibration& calibration, const std::optional<CalibrationCheck>& check);

}  // namespace yoke::bench
