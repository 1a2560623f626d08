#include "yoke/plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke::plan {
namespace {

constexpr std::size_t kClaimMax = 400;
constexpr double kReachedMax = 95;  // percent of a peak: nothing that was ever measured came so near

struct ClaimWords {
  double value = 0;
  std::string unit;
  std::optional<ModelFacts> model;
  std::optional<ImageModelFacts> image;
  std::optional<Machines> machines;
  const WeightFormat* format = nullptr;
  std::optional<Engine> engine;
  bool is_training = false;
  bool is_prefill = false;
  double requests = 1;
};

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// "23,477" and "69.5"; nothing where the word is more than a number.
std::optional<double> number_of(std::string_view word) {
  std::string digits;
  for (const char c : word) {
    if (c != ',') digits += c;
  }
  double value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc{} || end != digits.data() + digits.size() || !(value > 0) || value > 1e12)
    return std::nullopt;
  return value;
}

bool is_unit(std::string_view word) {
  return word == "tok/s" || word == "tokens/s" || word == "t/s" || word == "tps" || word == "s/image" ||
         word == "tokens/sec";
}

bool take_machines(std::string_view word, ClaimWords& words) {
  const auto parsed = try_to([&] { return parse_machines(word); });
  if (!parsed) return false;
  words.machines = *parsed;
  return true;
}

bool take_model(const std::string& word, ClaimWords& words) {
  if (const ImageModelFacts* image = find_image_model_facts(word)) {
    words.image = *image;
    return true;
  }
  if (const ModelFacts* model = find_model_facts(word)) {
    words.model = *model;
    return true;
  }
  if (words.model) return false;
  if (auto sized = facts_from_size(word)) {
    words.model = std::move(*sized);
    return true;
  }
  return false;
}

ClaimWords read_words(std::string_view claim) {
  ClaimWords words;
  std::vector<std::string> parts;
  for (const std::string& part : split(lowered(claim), ' ')) {
    if (!trim(part).empty()) parts.emplace_back(trim(part));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& word = parts[i];
    const std::string next = i + 1 < parts.size() ? parts[i + 1] : "";
    if (const auto number = number_of(word)) {
      const bool counts_requests = next == "requests" || next == "streams" || next == "users";
      (counts_requests ? words.requests : words.value) = *number;
      if (is_unit(next)) words.unit = next == "s/image" ? next : "tok/s";
      if (counts_requests || is_unit(next)) ++i;
      continue;
    }
    if (word == "train" || word == "training" || word == "pretraining") {
      words.is_training = true;
    } else if (word == "prefill" || word == "prompt") {
      words.is_prefill = true;
    } else if (const WeightFormat* format = find_format(word)) {
      words.format = format;
    } else if (const auto engine = try_to([&] { return from_document<Engine>(Document::string(word)); })) {
      words.engine = *engine;
    } else if (!take_machines(word, words)) {
      take_model(word, words);
    }
  }
  return words;
}

void refuse_gaps(const ClaimWords& words) {
  const char* const example = "such as: yoke plan explain \"69 tok/s gpt-oss-120b 2xspark\"";
  if (words.value <= 0) throw Error(ErrorCode::kUsage, "the claim has no number", example);
  if (!words.model && !words.image) throw Error(ErrorCode::kUsage, "the claim names no model that yoke knows", example);
  if (!words.machines) throw Error(ErrorCode::kUsage, "the claim names no machines", example);
}

std::string verdict_of(double claimed, const Estimate& expected, bool is_impossible, bool less_is_more) {
  if (is_impossible) return "impossible";
  if (claimed >= expected.low && claimed <= expected.high) return "plausible";
  const bool is_better = less_is_more ? claimed < expected.low : claimed > expected.high;
  return is_better ? "better than expected" : "worse than expected";
}

const WeightFormat& usual_format(const ClaimWords& words) {
  if (words.format) return *words.format;
  if (words.image || words.is_training) return *find_format("bf16");
  if (words.model->gpt_oss) return *find_format("mxfp4-all");
  return *find_format("int4");
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
    const double flop = 2 * static_cast<double>(count_model(request.model).matmul());
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
    const double flop = steps * step_flop(*request.image, request.width, request.height) / words.value;
    explained.arithmetic_percent = 100 * flop / (gpus * std::max(gpu.bf16, gpu.fp8));
  }
}

}  // namespace

ClaimExplained explain_claim(std::string_view claim, const Constants& k) {
  if (claim.size() > kClaimMax) {
    throw Error(ErrorCode::kUsage, fmt::format("a claim has at most {} characters", kClaimMax));
  }
  const ClaimWords words = read_words(claim);
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
