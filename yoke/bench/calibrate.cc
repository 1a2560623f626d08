#include "yoke/bench/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/fields.h"
#include "yoke/bench/sampled_formats.h"
#include "yoke/plan/format.h"

namespace yoke::bench {

template <class Visitor>
void visit_fields(Visitor& visit, EngineSample& sample) {
  visit.required("name", sample.name);
  visit.required("format", sample.format);
  visit.optional("int4_group", sample.int4_group);
  visit.required("ranks", sample.ranks);
  visit.required("layers", sample.layers);
  visit.required("width", sample.width);
  visit.required("heads", sample.heads);
  visit.required("mlp_width", sample.mlp_width);
  visit.required("prompt", sample.prompt);
  visit.required("answer", sample.answer);
  visit.optional("answers", sample.answers);
  visit.required("prefill", sample.prefill);
  visit.required("step", sample.step);
}
template <class Visitor>
void visit_fields(Visitor& visit, CalibrationSamples& samples) {
  visit.required("backend", samples.backend);
  visit.required("nodes", samples.nodes);
  visit.required("threads", samples.threads);
  visit.required("memory", samples.memory);
  visit.required("bandwidth", samples.bandwidth);
  visit.required("arithmetic", samples.arithmetic);
  visit.required("samples", samples.samples);
}

namespace {

constexpr std::int64_t kHeadWidth = 64;
constexpr std::int64_t kVocabulary = 2048;  // the least that a made tokenizer takes
constexpr std::int64_t kContext = 1024;
constexpr int kManyLayers = 17;
constexpr std::string_view kCheckedFormat = "int4";
constexpr std::int64_t kLongPrompt = 448;
// Bytes of weights of one rank.
constexpr double kMiddleBytes = 12e6;
constexpr double kLargeMin = 32e6;
constexpr double kLargeMax = 256e6;
constexpr double kCaches = 3;           // a large model is so many times the largest cache
constexpr double kMemoryPart = 12;      // and at most this part of what a node has: an engine also needs room to work
constexpr double kLargestStep = 0.1;    // seconds
constexpr double kMinGrowth = 1.5;  // times the next smaller one, or it would say nothing new

// A rank holds at least 128 columns, so that groups of int4 weights are cut nowhere.
std::int64_t least_heads(int ranks) { return (4 + 2 * ranks - 1) / (2 * ranks) * 2 * ranks; }

EngineSample narrow_sample(std::string name, std::int64_t layers, int ranks) {
  // As many heads as every number of ranks can share.
  const std::int64_t heads = ranks;
  return {.name = std::move(name),
          .format = weights::MakeFormat::kBf16,
          .ranks = ranks,
          .layers = layers,
          .width = kHeadWidth * heads,
          .heads = heads,
          .mlp_width = kHeadWidth * heads,
          .prompt = 8,
          .answer = 32,
          .answers = 12};
}

EngineSample wide_sample(std::string name, const SampledFormat& of, std::int64_t heads, int ranks) {
  return {.name = std::move(name),
          .format = of.format,
          .int4_group = of.int4_group,
          .ranks = ranks,
          .layers = 1,
          .width = kHeadWidth * heads,
          .heads = heads,
          .mlp_width = 4 * kHeadWidth * heads,
          .prompt = 32,
          .answer = 24};
}

// Of as many ranks as there are, small: about four million weights for each rank.
EngineSample small_sample(const SampledFormat& of, int ranks) {
  EngineSample sample = wide_sample(sample_name(of.name, SampleSize::kSmall), of, least_heads(ranks), ranks);
  sample.layers = std::max<std::int64_t>(32 / sample.heads, 2);
  return sample;
}

// Of one rank, beside the head.
double weight_bytes(const EngineSample& sample, std::string_view format) {
  const auto per_layer = static_cast<double>(4 * sample.width * sample.width + 3 * sample.width * sample.mlp_width);
  return per_layer * static_cast<double>(sample.layers) * plan::find_format(format)->linear_bits / 8 / sample.ranks;
}

std::optional<EngineSample> larger_sample(const SampledFormat& of, const EngineSample& small, SampleSize size,
                                          double wanted) {
  const double small_bytes = weight_bytes(small, of.name);
  const double bytes = std::min(wanted, small_bytes / small.step * kLargestStep);
  const bool is_large = size == SampleSize::kLarge;
  EngineSample sample = wide_sample(sample_name(of.name, size), of, small.heads * (is_large ? 4 : 2), small.ranks);
  sample.answer = is_large ? 8 : 16;
  sample.answers = is_large ? 5 : 8;
  sample.layers = std::max<std::int64_t>(std::llround(bytes / weight_bytes(sample, of.name)), 1);
  const double made = weight_bytes(sample, of.name);
  if (made < kMinGrowth * small_bytes || made > kMinGrowth * bytes)
    return std::nullopt;  // one layer is too much
  return sample;
}

}  // namespace

std::string sample_name(std::string_view format, SampleSize size) {
  const std::string_view word = size == SampleSize::kSmall ? "small" : size == SampleSize::kMiddle ? "middle" : "large";
  return fmt::format("{}, {}", format, word);
}

const EngineSample* find_sample(const CalibrationSamples& samples, std::string_view name, int ranks) {
  for (const EngineSample& sample : samples.samples) {
    if (sample.name == name && sample.ranks == ranks) return &sample;
  }
  return nullptr;
}

spec::ModelShape shape_of(const EngineSample& sample) {
  return {.name = "",
          .layers = sample.layers,
          .width = sample.width,
          .heads = sample.heads,
          .kv_heads = sample.heads,
          .head_width = kHeadWidth,
          .mlp_width = sample.mlp_width,
          .vocabulary = kVocabulary,
          .context = kContext};
}

Document to_json(const CalibrationSamples& samples) { return write_fields(samples); }
void from_json(const Document& document, CalibrationSamples& samples) { read_fields(document, samples); }

std::vector<EngineSample> samples_wanted(int ranks) {
  std::vector<EngineSample> wanted = {narrow_sample("one layer", 1, 1), narrow_sample("many layers", kManyLayers, 1)};
  if (ranks > 1) {
    wanted.push_back(narrow_sample("one layer", 1, ranks));
    wanted.push_back(narrow_sample("many layers", kManyLayers, ranks));
  }
  for (const SampledFormat& of : sampled_formats()) {
    wanted.push_back(small_sample(of, ranks));
    if (of.format != weights::MakeFormat::kBf16) continue;
    // The same weights behind a long prompt: what differs is the cache.
    wanted.push_back(small_sample(of, ranks));
    wanted.back().name = "long context";
    wanted.back().prompt = kLongPrompt;
    wanted.back().answers = 5;
  }
  return wanted;
}

std::vector<EngineSample> larger_samples(const CalibrationSamples& so_far, double last_cache) {
  std::vector<EngineSample> more;
  double large = std::clamp(kCaches * last_cache, kLargeMin, kLargeMax);
  if (so_far.memory > 0) large = std::min(large, so_far.memory / kMemoryPart);
  for (const SampledFormat& of : sampled_formats()) {
    const EngineSample* const small = find_sample(so_far, sample_name(of.name, SampleSize::kSmall), so_far.nodes);
    if (small == nullptr || small->step <= 0) continue;
    if (large > 2 * kMiddleBytes) {
      if (const auto middle = larger_sample(of, *small, SampleSize::kMiddle, kMiddleBytes)) more.push_back(*middle);
    }
    if (const auto largest = larger_sample(of, *small, SampleSize::kLarge, large)) more.push_back(*largest);
    if (of.name != kCheckedFormat) continue;
    // Between the sizes that the fit sees, and as deep as models are.
    more.push_back(wide_sample("check", of, small->heads * 2, small->ranks));
    more.back().mlp_width = 3 * more.back().width;
    more.back().layers = 2 * kManyLayers;
    more.back().answers = 5;
  }
  return more;
}

}  // namespace yoke::bench
