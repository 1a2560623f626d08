#include "yoke/plan/serve.h"
#include "yoke/plan/scales.h"

#include <algorithm>
#include <cmath>

namespace yoke::plan {
namespace {

constexpr double kServerDecodeMfu = 0.5;     // of peak while decoding in batches; the term is small beside the bytes
constexpr double kNvlinkPrefillLoss = 0.95;  // for each doubling of ranks inside a machine

bool is_server(const Machines& machines) {
  return machines.kind != HardwareClass::kGb10 && machines.kind != HardwareClass::kCpu;
}
bool is_blackwell(const Machines& machines) {
  return machines.kind == HardwareClass::kBlackwell || machines.kind == HardwareClass::kBlackwellUltra;
}
bool is_mixture(const ServeCase& c) { return c.model.experts > 0; }

// yoke's kernels differ by the width of a weight, and at four bits by what the bits mean.
struct CpuConstants {
  Constant bits32, bits16, bits8, int4, fp4;
};
constexpr CpuConstants kCpuBandwidths = {Constant::kEtaCpu32, Constant::kEtaCpu16, Constant::kEtaCpu8,
                                         Constant::kEtaCpu4, Constant::kEtaCpuFp4};
constexpr CpuConstants kCpuPrefills = {Constant::kPrefillCpu32, Constant::kPrefillCpu16, Constant::kPrefillCpu8,
                                       Constant::kPrefillCpu4, Constant::kPrefillCpuFp4};
Constant cpu_constant(const WeightFormat& format, double bits, const CpuConstants& of) {
  if (bits < 6) return format.arithmetic == Arithmetic::kFp4 ? of.fp4 : of.int4;
  return bits >= 24 ? of.bits32 : bits >= 12 ? of.bits16 : of.bits8;
}

double cpu_efficiency(const ServeCase& c, double bits, const Constants& k);

double weight_efficiency(const ServeCase& c, const Constants& k) {
  switch (c.machines.kind) {
    case HardwareClass::kGb10:
      if (c.engine == Engine::kLlamaCpp) return k[Constant::kEtaLlamaCpp];
      if (c.engine == Engine::kTensorRt) return k[Constant::kEtaTensorRtGb10];
      if (c.format.linear_bits >= 6) return k[is_mixture(c) ? Constant::kEtaVllmWideMixture : Constant::kEtaVllmWide];
      // Integer weights of dense layers go through Marlin, FP4 and experts through kernels that reach less.
      return k[c.format.arithmetic == Arithmetic::kBf16 && !is_mixture(c) ? Constant::kEtaVllmInt4Dense
                                                                          : Constant::kEtaVllmFourBit];
    case HardwareClass::kBlackwell:
    case HardwareClass::kBlackwellUltra:
      return k[c.format.arithmetic == Arithmetic::kFp4 ? Constant::kEtaBlackwellFp4 : Constant::kEtaBlackwell];
    case HardwareClass::kCpu:
      return cpu_efficiency(c, c.format.linear_bits, k);
    case HardwareClass::kHopper:
    case HardwareClass::kOtherGpu:
      break;
  }
  // Without FP4 units these weights are widened before they are multiplied.
  return k[c.format.arithmetic == Arithmetic::kFp4 ? Constant::kEtaHopperFp4 : Constant::kEtaHopper];
}

double cache_efficiency(const ServeCase& c, const Constants& k) {
  if (c.machines.kind == HardwareClass::kCpu) return k[Constant::kEtaCpuCache];
  if (c.machines.kind == HardwareClass::kGb10) return k[Constant::kEtaCacheGb10];
  return k[is_blackwell(c.machines) ? Constant::kEtaBlackwell : Constant::kEtaHopper];
}

// Launches and small kernels, of one layer.
double layer_seconds(const ServeCase& c, double sequences, const Constants& k) {
  if (c.machines.kind == HardwareClass::kCpu) return k[Constant::kLayerCpu] * kMicro;
  if (is_server(c.machines)) {
    const double layer = k[c.engine == Engine::kTensorRt ? Constant::kLayerTensorRt : Constant::kLayerServer];
    if (!is_mixture(c)) return layer * kMicro;
    return (layer + k[is_blackwell(c.machines) ? Constant::kLayerBlackwellMixture : Constant::kLayerHopperMixture]) *
           kMicro;
  }
  double micros = k[Constant::kLayerGb10];
  if (!c.graphs) micros += k[Constant::kLayerWithoutGraphs];
  if (c.engine == Engine::kLlamaCpp && is_mixture(c) && sequences >= 2) micros += k[Constant::kLlamaCppMixtureBatch];
  return micros * kMicro;
}

double decode_arithmetic_rate(const ServeCase& c, const Constants& k) {
  if (c.machines.kind == HardwareClass::kCpu) {
    return k[cpu_constant(c.format, c.format.linear_bits, kCpuPrefills)] * c.machines.gpu.bf16;
  }
  if (c.machines.kind == HardwareClass::kGb10) return k[Constant::kDecodeRateGb10] * kTera;
  return kServerDecodeMfu * peak_rate(c.machines.gpu, c.format.arithmetic);
}

// Experts that so many tokens touch. Tokens of one batch choose alike, so they count as tokens^skew independent ones.
double distinct_experts(const spec::ModelFacts& model, double tokens, double skew) {
  const auto e = static_cast<double>(model.experts);
  const auto used = static_cast<double>(model.experts_used);
  return e * (1 - std::pow(1 - used / e, std::pow(tokens, skew)));
}

struct ReadParts {
  double experts = 0;
  double others = 0;
  double attention = 0;  // of others
  double head = 0;       // of others
};

ReadParts read_parts(const ServeCase& c, double tokens, const Constants& k) {
  const spec::ModelCount count = spec::count_model(c.model);
  const auto wide = [](std::int64_t value) { return static_cast<double>(value); };
  ReadParts parts;
  parts.attention = wide(count.attention) * c.format.attention_bits / 8;
  parts.head = wide(count.head) * c.format.head_bits / 8;
  parts.others = wide(count.rest - count.attention) * c.format.linear_bits / 8 + parts.attention + parts.head;
  if (is_mixture(c)) {
    parts.experts =
        distinct_experts(c.model, tokens, k[Constant::kRoutingSkew]) * wide(count.expert) * c.format.linear_bits / 8;
  }
  double factor = 1;
  if (c.read_bytes_given > 0) {
    factor = c.read_bytes_given / parts.others;  // dense models only
  } else if (c.file_bytes > 0) {
    factor = c.file_bytes / stored_bytes(count, c.model, c.format);
  }
  return {parts.experts * factor, parts.others * factor, parts.attention * factor, parts.head * factor};
}

// Of memory bandwidth. A group of int4 weights costs time of its own, so a weight takes a + b/group seconds. Groups of
// 128 and of 32 are measured.
double cpu_efficiency(const ServeCase& c, double bits, const Constants& k) {
  constexpr double kLargeGroup = 128;
  constexpr double kSmallGroup = 32;
  const auto efficiency = [&](Constant id) {
    const double of_large_models = k[id];
    if (!c.machines.measured) return of_large_models;
    const auto rate = read_rate(*c.machines.measured, row_of(id).name, rank_bytes(c, k));
    return rate ? *rate / c.machines.gpu.bandwidth : of_large_models;
  };
  const Constant id = cpu_constant(c.format, bits, kCpuBandwidths);
  const double group = c.format.group;
  if (id != Constant::kEtaCpu4 || group <= 0 || group >= kLargeGroup) return efficiency(id);
  const double small = std::min((1 / group - 1 / kLargeGroup) / (1 / kSmallGroup - 1 / kLargeGroup), 1.0);  // 0 to 1
  return 1 / ((1 - small) / efficiency(id) + small / efficiency(Constant::kEtaCpu4Group32));
}

// Seconds to read these on one GPU. On a processor each width has its own rate.
double read_seconds(const ServeCase& c, const ReadParts& parts, const Constants& k) {
  const double bandwidth = c.machines.gpu.bandwidth;
  const double linear = (parts.experts + parts.others) / (bandwidth * weight_efficiency(c, k));
  if (c.machines.kind != HardwareClass::kCpu) return linear;
  const auto slower_by = [&](double bytes, double bits) {
    const double eta = cpu_efficiency(c, bits, k);
    return bytes / bandwidth * (1 / eta - 1 / weight_efficiency(c, k));
  };
  return linear + slower_by(parts.attention, c.format.attention_bits) + slower_by(parts.head, c.format.head_bits);
}

double matmul_flop(const ServeCase& c, bool with_head) {
  const spec::ModelCount count = spec::count_model(c.model);
  return 2 * static_cast<double>(count.matmul() - (with_head ? 0 : count.head));
}

// Of one token that sees so many others.
double attention_flop(const spec::ModelFacts& m, double seen) {
  if (m.latent) {
    const spec::LatentAttention& a = *m.latent;
    const double reach = m.selected_tokens > 0 ? std::min(seen, static_cast<double>(m.selected_tokens)) : seen;
    return 2 * static_cast<double>(m.layers * m.heads * (a.plain_width + a.rotary_width + a.value_width)) * reach;
  }
  const auto per_layer = static_cast<double>(4 * m.heads * m.head_width);
  if (m.short_layers == spec::ShortLayers::kNone) return per_layer * static_cast<double>(m.layers) * seen;
  const double near = m.short_layers == spec::ShortLayers::kWindow ? std::min(seen, static_cast<double>(m.window)) : 0;
  return per_layer * (static_cast<double>(m.full_layers) * seen + static_cast<double>(m.layers - m.full_layers) * near);
}

struct PrefillRates {
  double matmul = 0;
  double attention = 0;
};

PrefillRates prefill_rates(const ServeCase& c, const Constants& k) {
  if (c.machines.kind == HardwareClass::kCpu) {
    return {k[cpu_constant(c.format, c.format.linear_bits, kCpuPrefills)] * c.machines.gpu.bf16,
            k[Constant::kPrefillCpu32] * c.machines.gpu.bf16};
  }
  if (is_server(c.machines)) {
    const bool is_fp4 = c.format.arithmetic == Arithmetic::kFp4 && c.machines.gpu.fp4 > 0;
    const double mfu = k[is_fp4 ? Constant::kPrefillMfuServerFp4 : Constant::kPrefillMfuServer];
    return {mfu * peak_rate(c.machines.gpu, c.format.arithmetic), k[Constant::kPrefillMfuServer] * c.machines.gpu.bf16};
  }
  PrefillRates rates;
  const double width = c.model.latent ? 128 : std::min<double>(static_cast<double>(c.model.head_width), 128);
  rates.attention = k[Constant::kPrefillAttention] * std::sqrt(width / 128) * kTera;
  if (c.engine == Engine::kLlamaCpp) {
    const bool is_mxfp4 = c.format.arithmetic == Arithmetic::kFp4;
    rates.matmul = k[is_mxfp4                    ? Constant::kPrefillMxfp4
                     : c.format.linear_bits >= 8 ? Constant::kPrefillQ8
                                                 : Constant::kPrefillQ4] *
                   kTera;
  } else if (c.format.arithmetic == Arithmetic::kFp4) {
    rates.matmul = k[is_mixture(c) ? Constant::kPrefillNvfp4Mixture : Constant::kPrefillNvfp4Dense] * kTera;
  } else {
    rates.matmul = k[Constant::kPrefillBf16Gb10] * kTera;
  }
  return rates;
}

// How much faster a group of ranks reads a prompt than one.
double prefill_gain(const ServeCase& c, const Group& group, const Constants& k) {
  double gain = group.ranks() * std::pow(kNvlinkPrefillLoss, std::log2(group.per_node));
  if (group.nodes > 1 && c.machines.exchange != Exchange::kTcp) gain *= k[Constant::kPrefillOverFabric];
  return gain;
}

double exchange_bytes(const ServeCase& c, double tokens) {
  // BF16; yoke sums in FP32 on a processor.
  const double each = c.machines.kind == HardwareClass::kCpu && c.engine == Engine::kYoke ? 4 : 2;
  return each * static_cast<double>(c.model.width) * tokens;
}

// Sequences of one replica that run at once.
double sequences_of_replica(const ServeCase& c) {
  const double each = std::max(c.batch / c.layout.replicas, 1.0);
  return c.sequences_max > 0 ? std::min(each, c.sequences_max) : each;
}

// From one stage to the next. Between two processors an all-reduce is one message each way: as long as this takes.
double stage_seconds(const ServeCase& c, double bytes, const Constants& k) {
  if (c.machines.kind == HardwareClass::kCpu) return all_reduce_seconds(c.machines, {.nodes = 2}, bytes, k);
  const bool crosses = c.layout.tensor * c.layout.pipeline > c.machines.gpus_per_node;
  const double rate = crosses ? c.machines.link : std::max(c.machines.gpu.nvlink, 20e9);
  return 2 * c.machines.link_latency + bytes / rate;
}

// Stages of yoke's engine take turns: a step passes all of them with every sequence.
bool has_waves(const ServeCase& c) { return c.layout.pipeline > 1 && c.engine != Engine::kYoke; }

StepTime wave_step(const ServeCase& c, double sequences, const Constants& k) {
  const double tokens = sequences * (c.draft + 1);
  const auto layers = static_cast<double>(c.model.layers);
  const double tp = c.layout.tensor;
  const double bandwidth = c.machines.gpu.bandwidth;
  const double eta = weight_efficiency(c, k);
  const Group group = group_of(c.machines, c.layout.tensor);
  StepTime step;
  if (c.layout.experts > 1) {
    const ReadParts parts = read_parts(c, tokens * c.layout.replicas, k);
    step.weights = (parts.others / tp + parts.experts / c.layout.experts) / (bandwidth * eta);
    const Group all = group_of(c.machines, c.layout.experts);
    const double bytes = exchange_bytes(c, tokens) * static_cast<double>(c.model.experts_used);
    step.exchange += 2 * layers * all_to_all_seconds(c.machines, all, bytes, k);
  } else {
    const ReadParts parts = read_parts(c, tokens, k);
    step.weights = read_seconds(c, parts, k) / tp;
  }
  const double cache_split = std::min(tp, c.model.latent ? 1.0 : static_cast<double>(c.model.kv_heads));
  step.cache = sequences * cache_bytes_per_sequence(c, c.context) / (cache_split * bandwidth * cache_efficiency(c, k));
  step.fixed = layers * layer_seconds(c, sequences, k);
  if (c.machines.kind == HardwareClass::kCpu) step.fixed += k[Constant::kStepCpu] * kMicro;
  if (is_server(c.machines)) {
    const bool is_trt = c.engine == Engine::kTensorRt;
    step.fixed += sequences * k[is_trt ? Constant::kStreamTensorRt : Constant::kStreamServer] * kMicro;
  }
  // A processor's own rates of one token hold its arithmetic already.
  const double more_tokens = c.machines.kind == HardwareClass::kCpu ? tokens - 1 : tokens;
  if (tokens > 1) step.arithmetic = more_tokens * matmul_flop(c, true) / (tp * decode_arithmetic_rate(c, k));
  // A server's matrix units work while the memory streams: only what is longer than the weights shows.
  if (is_server(c.machines)) step.arithmetic = std::max(step.arithmetic - step.weights, 0.0);
  if (c.layout.tensor > 1) {
    step.exchange += 2 * layers * all_reduce_seconds(c.machines, group, exchange_bytes(c, tokens), k);
  }
  if (c.layout.pipeline > 1) step.exchange += (c.layout.pipeline - 1) * stage_seconds(c, exchange_bytes(c, tokens), k);
  if (c.machines.kind == HardwareClass::kCpu && c.layout.tensor * c.layout.pipeline > 1) {
    step.exchange += k[Constant::kStepCpuRanks] * kMicro;
  }
  if (is_server(c.machines) && c.prompt > 0 && c.generated > 0 && sequences > 1) {
    step.prompts = sequences / c.generated * prefill_seconds(c, c.prompt, 0, k);
  }
  return step;
}

}  // namespace

std::string_view to_string(Engine engine) {
  for (const auto& [name, candidate] : enum_names(engine)) {
    if (candidate == engine) return name;
  }
  return "";
}

double peak_rate(const GpuModel& gpu, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kFp4 && gpu.fp4 > 0) return gpu.fp4;
  // Without FP4 units four-bit weights are widened and multiplied in BF16.
  if (arithmetic == Arithmetic::kFp8 && gpu.fp8 > 0) return gpu.fp8;
  return gpu.bf16;
}

double weight_bytes(const ServeCase& c) {
  return c.file_bytes > 0 ? c.file_bytes : stored_bytes(spec::count_model(c.model), c.model, c.format);
}

double read_bytes(const ServeCase& c, double tokens, const Constants& k) {
  const ReadParts parts = read_parts(c, tokens, k);
  return parts.experts + parts.others;
}

double rank_bytes(const ServeCase& c, const Constants& k) {
  const double all = is_mixture(c) ? weight_bytes(c) : read_bytes(c, 1, k);
  return all / (c.layout.tensor * c.layout.pipeline);
}

double cache_bytes_per_sequence(const ServeCase& c, double tokens) {
  return c.cache_bytes * spec::cache_values(c.model, static_cast<std::int64_t>(tokens), spec::CacheRule::kRead);
}

double cache_bytes_held(const ServeCase& c, double tokens) {
  // vLLM and yoke put all layers into one pool of pages of 16 tokens; llama.cpp keeps windows short.
  const bool pools = c.engine != Engine::kLlamaCpp;
  const double pages = std::ceil(tokens / 16) * 16;
  return c.cache_bytes * spec::cache_values(c.model, static_cast<std::int64_t>(pages),
                                            pools ? spec::CacheRule::kAllocated : spec::CacheRule::kRead);
}

StepTime decode_step(const ServeCase& c, const Constants& k) {
  const double sequences = sequences_of_replica(c);
  // Stages work on waves in turn: each wave passes all of them.
  return wave_step(c, has_waves(c) ? std::max(sequences / c.layout.pipeline, 1.0) : sequences, k);
}

double decode_rate(const ServeCase& c, const Constants& k) {
  const double sequences = sequences_of_replica(c);
  double tokens_per_step = 1;
  if (c.draft > 0) {
    const double acceptance = c.acceptance > 0 ? c.acceptance : k[Constant::kAcceptance];
    double chance = 1;
    for (int i = 0; i < c.draft; ++i) tokens_per_step += chance *= acceptance;
  }
  const double rate = sequences * tokens_per_step / decode_step(c, k).total();
  // One request uses one replica. Several do not spread evenly, over replicas as little as over the waves of a
  // pipeline.
  const double busy = std::min<double>(c.layout.replicas, c.batch);
  const bool is_shared_out = busy > 1 || (has_waves(c) && sequences > 1);
  return (is_shared_out ? k[Constant::kReplicaBalance] : 1) * busy * rate;
}

double prefill_seconds(const ServeCase& c, double fresh, double depth, const Constants& k) {
  const PrefillRates rates = prefill_rates(c, k);
  const Group group = group_of(c.machines, c.layout.tensor);
  const double all_weights = read_bytes(c, 1e6, k);  // a chunk touches every expert
  const double per_token =
      matmul_flop(c, false) / rates.matmul + attention_flop(c.model, depth + fresh / 2) / rates.attention +
      all_weights / (c.machines.gpu.bandwidth * weight_efficiency(c, k) * std::min(c.chunk, std::max(fresh, 1.0)));
  double seconds = fresh * per_token / prefill_gain(c, group, k);
  if (group.nodes > 1 && c.machines.exchange == Exchange::kTcp) {
    const double chunks = std::ceil(fresh / c.chunk);
    seconds += chunks * 2 * static_cast<double>(c.model.layers) *
               all_reduce_seconds(c.machines, group, exchange_bytes(c, std::min(fresh, c.chunk)), k);
  }
  return seconds;
}

double full_rate(const ServeCase& c, const Constants& k) {
  const int ranks = c.layout.tensor * c.layout.pipeline;
  const double held = c.prompt + 0.6 * c.generated;
  const double room = 0.9 * c.machines.gpu.memory * ranks - weight_bytes(c);
  const double sequences = std::clamp(room / cache_bytes_held(c, held), 1.0, 2048.0);
  double mfu = 0;
  if (is_mixture(c)) {
    const bool is_fp4 = c.format.arithmetic == Arithmetic::kFp4 && c.machines.gpu.fp4 > 0;
    mfu = k[is_fp4 ? Constant::kFullMfuMixtureFp4 : Constant::kFullMfuMixture];
  } else {
    mfu = k[c.format.arithmetic == Arithmetic::kFp4 ? Constant::kFullMfuFp4 : Constant::kFullMfuFp8];
  }
  const double rate = mfu * peak_rate(c.machines.gpu, c.format.arithmetic) * ranks;
  const double bytes = read_bytes(c, sequences, k) + sequences * cache_bytes_per_sequence(c, held);
  double step =
      bytes / (ranks * c.machines.gpu.bandwidth * k[Constant::kFullEta]) + sequences * matmul_flop(c, true) / rate;
  if (c.layout.tensor > 1) {
    step += 2 * static_cast<double>(c.model.layers) *
            all_reduce_seconds(c.machines, group_of(c.machines, c.layout.tensor), exchange_bytes(c, sequences), k);
  }
  const double prefill = c.prompt * (matmul_flop(c, false) + attention_flop(c.model, c.prompt / 2)) / rate;
  return c.layout.replicas * c.generated / (prefill + c.generated * step / sequences);
}

}  // namespace yoke::plan
