#include "yoke/plan/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/plan/claim_words.h"

namespace yoke::plan {
namespace {

constexpr std::size_t kClaimMax = 400;
constexpr double kReachedMax = 95;  // percent of a peak: nothing that was ever measured came so near

std::string verdict_of(double claimed, const Estimate& expected, bool is_impossible, bool less_is_more) {
  if (is_impossible) return "impossible";
  if (claimed >= expected.low && claimed <= expected.high) return "plausible";
  const bool is_better = less_is_more ? claimed < expected.low : claimed > expected.high;
  return is_better ? "better than expected" : "worse than expected";
}

const WeightFormat& usual_format(const ClaimWords& words) {
  if (words.format) return *words.format;
  if (words.image || words.is_training) return *find_format("bf16");
  const bool is_llama_cpp = words.engine == Engine::kLlamaCpp;
  if (words.model->gpt_oss) return *find_format(is_llama_cpp ? "mxfp4-gguf" : "mxfp4-all");
  return *find_format(is_llama_cpp ? "q4_k_m" : "int4");
}

Request request_of(const ClaimWords& words) {
  Request request;
  request.goal = words.image ? Goal::kDraw : words.is_training ? Goal::kTrain : Goal::kServe;
  if (words.model) request.model = *words.model;
  request.image = words.image;
  request.format = usual_format(words);
  request.machines = *words.machines;
  request.engine = words.engine.value_or(Engine::kVllm);
  request.concurrency = words.requests;
  request.context = 1024;
  request.prompt = 512;
  return request;
}

const Estimate& estimate_named(const Plan& plan, std::string_view start) {
  for (const Estimate& estimate : plan.estimates) {
    if (estimate.name.starts_with(start)) return estimate;
  }
  return plan.estimates.front();
}

void add_implied(const ClaimWords& words, const Request& request, const Plan& plan, ClaimExplained& explained,
                 const Constants& k) {
  const auto gpus = static_cast<double>(request.machines.gpus());
  const GpuModel& gpu = request.machines.gpu;
  if (request.goal == Goal::kServe) {
    const ServeCase c = serve_case(request, plan.layouts.front().layout);
    const double tokens = words.requests;
    const double steps = words.value / tokens;
    if (!words.is_prefill) {
      explained.bandwidth_percent = 100 * steps * read_bytes(c, tokens, k) / (gpus * gpu.bandwidth);
    }
    const double flop = 2 * static_cast<double>(spec::count_model(request.model).matmul());
    const double peak = peak_rate(gpu, request.format.arithmetic);
    explained.arithmetic_percent = 100 * words.value * flop / (gpus * peak);
  } else if (request.goal == Goal::kTrain) {
    TrainCase c;
    c.model = request.model;
    c.sequence = request.sequence;
    const double flop = train_flop_per_token(c) * words.value / gpus;
    const double peak = peak_rate(gpu, request.format.arithmetic);
    explained.arithmetic_percent = 100 * flop / peak;
    explained.notes.push_back(fmt::format("{:.1f} GFLOP a token (causal), {:.0f} TFLOP/s on each GPU",
                                          train_flop_per_token(c) / 1e9, flop / 1e12));
    if (gpu.fp8 > 0 && request.format.arithmetic == Arithmetic::kBf16) {
      explained.notes.push_back(fmt::format("of the FP8 peak it would be {:.0f}%", 100 * flop / gpu.fp8));
    }
  } else {
    const double steps = request.steps > 0 ? request.steps : request.image->steps;
    const double flop = steps * spec::step_flop(*request.image, request.width, request.height) / words.value;
    explained.arithmetic_percent = 100 * flop / (gpus * std::max(gpu.bf16, gpu.fp8));
  }
}

}  // namespace

ClaimExplained explain_claim(std::string_view claim, const Constants& k) {
  if (claim.size() > kClaimMax) {
    throw Error(ErrorCode::kUsage, fmt::format("a claim has at most {} characters", kClaimMax));
  }
  const ClaimWords words = read_claim(claim);
  refuse_gaps(words);
  const Request request = request_of(words);
  const Plan plan = make_plan(request, k);
  ClaimExplained explained{.claim = printable(claim, kClaimMax), .verdict = {}, .claimed = words.value};
  explained.unit = words.image ? "s/image" : "tok/s";
  explained.layout = plan.layouts.front().name;
  const std::string_view wanted = words.image          ? "seconds per image"
                                  : words.is_training  ? "training"
                                  : words.is_prefill   ? "prefill"
                                  : words.requests > 1 ? "decode, "
                                                       : "decode, one";
  explained.expected = estimate_named(plan, wanted);
  for (const Estimate& estimate : plan.estimates) {
    // Of drawing, the time of all GPUs; of serving several requests, their sum.
    if (words.image && estimate.name.starts_with("seconds per image")) explained.expected = estimate;
    if (words.requests > 1 && estimate.name.ends_with(" requests")) explained.expected = estimate;
  }
  add_implied(words, request, plan, explained, k);
  const bool is_impossible = explained.bandwidth_percent > kReachedMax || explained.arithmetic_percent > kReachedMax;
  explained.verdict = verdict_of(words.value, explained.expected, is_impossible, words.image.has_value());
  explained.notes.push_back(fmt::format("format {}{}", request.format.name, words.format ? "" : " (assumed)"));
  for (const std::string& guess : request.model.guesses) explained.notes.push_back(guess);
  if (!words.unknown.empty()) {
    explained.notes.push_back(fmt::format("not understood and left out: {}",
                                          printable(fmt::format("{}", fmt::join(words.unknown, ", ")), 120)));
  }
  if (!plan.fits) explained.notes.emplace_back("the model does not fit these machines in that format");
  if (is_impossible && explained.bandwidth_percent > kReachedMax) {
    explained.notes.emplace_back(
        "more than the memory can deliver: a narrower format, several requests counted "
        "together, or speculative decoding would explain it");
  } else if (is_impossible) {
    explained.notes.emplace_back(
        "nearer to the dense peak than anything measured: padded tokens, sparsity or another precision counted");
  }
  return explained;
}

Document to_json(const ClaimExplained& explained) {
  Document notes = Document::list();
  for (const std::string& note : explained.notes) notes.items.push_back(Document::string(note));
  return Document::map({{"claim", Document::string(explained.claim)},
                        {"verdict", Document::string(explained.verdict)},
                        {"claimed", Document::number(explained.claimed)},
                        {"unit", Document::string(explained.unit)},
                        {"expected", Document::number(explained.expected.value)},
                        {"low", Document::number(explained.expected.low)},
                        {"high", Document::number(explained.expected.high)},
                        {"layout", Document::string(explained.layout)},
                        {"bandwidth_percent", Document::number(explained.bandwidth_percent)},
                        {"arithmetic_percent", Document::number(explained.arithmetic_percent)},
                        {"notes", std::move(notes)}});
}

}  // namespace yoke::plan
