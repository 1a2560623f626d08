#include "yoke/plan/request_json.h"

#include "yoke/base/fields.h"

namespace yoke::spec {

// In the namespace of the structs, where the field templates look them up.
constexpr auto enum_names(ShortLayers) {
  return std::array{std::pair{"none", ShortLayers::kNone}, std::pair{"window", ShortLayers::kWindow},
                    std::pair{"state", ShortLayers::kState}};
}
constexpr auto enum_names(MemoryKind) {
  return std::array{std::pair{"host", MemoryKind::kHost}, std::pair{"gpu", MemoryKind::kGpu},
                    std::pair{"unified", MemoryKind::kUnified}};
}

template <class Visitor>
void visit_fields(Visitor& visit, LatentAttention& latent) {
  visit.required("query_rank", latent.query_rank);
  visit.required("kv_rank", latent.kv_rank);
  visit.required("plain_width", latent.plain_width);
  visit.required("rotary_width", latent.rotary_width);
  visit.required("value_width", latent.value_width);
}

template <class Visitor>
void visit_fields(Visitor& visit, ModelFacts& model) {
  visit.required("name", model.name);
  visit.required("layers", model.layers);
  visit.required("width", model.width);
  visit.required("heads", model.heads);
  visit.required("kv_heads", model.kv_heads);
  visit.required("head_width", model.head_width);
  visit.optional("mlp_width", model.mlp_width);
  visit.optional("experts", model.experts);
  visit.optional("experts_used", model.experts_used);
  visit.optional("expert_width", model.expert_width);
  visit.optional("shared_experts", model.shared_experts);
  visit.optional("shared_width", model.shared_width);
  visit.optional("dense_layers", model.dense_layers);
  visit.optional("vocabulary", model.vocabulary);
  visit.optional("context", model.context);
  visit.optional("tied", model.tied);
  visit.optional("gated", model.gated);
  visit.optional("qkv_bias", model.qkv_bias);
  visit.optional("qk_norm", model.qk_norm);
  visit.optional("gpt_oss", model.gpt_oss);
  visit.optional("norms_per_layer", model.norms_per_layer);
  visit.optional("short_layers", model.short_layers);
  visit.optional("full_layers", model.full_layers);
  visit.optional("window", model.window);
  visit.optional("latent", model.latent);
  visit.optional("selected_tokens", model.selected_tokens);
  visit.optional("total_given", model.total_given);
  visit.optional("active_given", model.active_given);
  visit.optional("source", model.source);
  visit.optional("guesses", model.guesses);
}

template <class Visitor>
void visit_fields(Visitor& visit, ImagePart& part) {
  visit.required("name", part.name);
  visit.required("parameters", part.parameters);
  visit.optional("source", part.source);
}

template <class Visitor>
void visit_fields(Visitor& visit, ImageModelFacts& model) {
  visit.required("name", model.name);
  visit.required("parts", model.parts);
  visit.optional("width", model.width);
  visit.optional("blocks", model.blocks);
  visit.optional("heads", model.heads);
  visit.optional("text_tokens", model.text_tokens);
  visit.optional("flop_per_step_1024", model.flop_per_step_1024);
  visit.optional("encoder_flop", model.encoder_flop);
  visit.optional("decoder_flop_1024", model.decoder_flop_1024);
  visit.optional("steps", model.steps);
  visit.optional("source", model.source);
}

}  // namespace yoke::spec

namespace yoke::plan {

constexpr auto enum_names(Exchange) {
  return std::array{std::pair{"nccl", Exchange::kNccl}, std::pair{"one-shot", Exchange::kOneShot},
                    std::pair{"nccl-tests", Exchange::kNcclTests}, std::pair{"tcp", Exchange::kTcp},
                    std::pair{"bonded", Exchange::kBonded}};
}
constexpr auto enum_names(Tuning) {
  return std::array{std::pair{"full", Tuning::kFull}, std::pair{"lora", Tuning::kLora}};
}

template <class Visitor>
void visit_fields(Visitor& visit, GpuModel& gpu) {
  visit.required("memory", gpu.memory);
  visit.required("bandwidth", gpu.bandwidth);
  visit.required("bf16", gpu.bf16);
  visit.required("fp8", gpu.fp8);
  visit.required("fp4", gpu.fp4);
  visit.required("nvlink", gpu.nvlink);
  visit.required("kind", gpu.kind);
}

template <class Visitor>
void visit_fields(Visitor& visit, Machines& machines) {
  visit.required("text", machines.text);
  visit.required("hardware", machines.hardware);
  visit.required("nodes", machines.nodes);
  visit.required("gpus_per_node", machines.gpus_per_node);
  visit.required("gpu", machines.gpu);
  visit.required("link", machines.link);
  visit.required("link_latency", machines.link_latency);
  visit.required("rails", machines.rails);
  visit.required("exchange", machines.exchange);
  visit.required("topology", machines.topology);
  visit.required("oversubscription", machines.oversubscription);
  visit.optional("notes", machines.notes);
  visit.optional("measured", machines.measured);
}

template <class Visitor>
void visit_fields(Visitor& visit, RankWeights& packed) {
  visit.required("ranks", packed.ranks);
  visit.required("bytes", packed.bytes);
  visit.optional("work_space", packed.work_space);
  visit.optional("stages", packed.stages);
  visit.optional("layers_part", packed.layers_part);
}

// The request without what stands in a catalogue: its format is a name there.
struct RequestFields {
  Request request;
  std::string format;
  std::optional<spec::ModelFacts> model;
};

template <class Visitor>
void visit_fields(Visitor& visit, RequestFields& fields) {
  Request& r = fields.request;
  visit.required("goal", r.goal);
  visit.optional("model", fields.model);
  visit.optional("image", r.image);
  visit.required("format", fields.format);
  visit.required("file_bytes", r.file_bytes);
  visit.required("machines", r.machines);
  visit.required("engine", r.engine);
  visit.required("context", r.context);
  visit.optional("context_may_shrink", r.context_may_shrink);
  visit.optional("rank_weights", r.rank_weights);
  visit.required("concurrency", r.concurrency);
  visit.optional("embeddings", r.embeddings);
  visit.required("prompt", r.prompt);
  visit.required("generated", r.generated);
  visit.required("cache_bytes", r.cache_bytes);
  visit.required("draft", r.draft);
  visit.required("acceptance", r.acceptance);
  visit.required("tuning", r.tuning);
  visit.required("sequence", r.sequence);
  visit.required("global_batch", r.global_batch);
  visit.required("tokens", r.tokens);
  visit.required("width", r.width);
  visit.required("height", r.height);
  visit.required("steps", r.steps);
  visit.required("tensor", r.tensor);
  visit.required("pipeline", r.pipeline);
  visit.required("replicas", r.replicas);
}

namespace {

bool is_drawable(const spec::ImageModelFacts& model) {
  const auto within = [](double value, double high) { return value >= 0 && value <= high; };
  bool is_sane = !model.parts.empty() && model.steps >= 1 && model.steps <= 65536;
  for (const spec::ImagePart& part : model.parts)
    is_sane = is_sane && within(static_cast<double>(part.parameters), 1e15);
  for (const std::int64_t size : {model.width, model.blocks, model.heads, model.text_tokens}) {
    is_sane = is_sane && within(static_cast<double>(size), 1 << 20);
  }
  return is_sane && within(model.flop_per_step_1024, 1e24) && within(model.encoder_flop, 1e24) &&
         within(model.decoder_flop_1024, 1e24);
}

void refuse_absurd(const Document& document, const Request& r) {
  const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
  const Machines& m = r.machines;
  const bool has_machines = within(m.nodes, 1, kNodesMax) && within(m.gpus_per_node, 1, 1024) &&
                            within(m.gpu.memory, 1, 1e15) && within(m.gpu.bandwidth, 1, 1e16) &&
                            within(m.gpu.bf16, 1, 1e18) && within(m.link, 1, 1e15) && within(m.rails, 1, 1024) &&
                            within(m.oversubscription, 1, 1000) && within(m.link_latency, 0, 10) &&
                            within(m.gpu.fp8, 0, 1e18) && within(m.gpu.fp4, 0, 1e18) && within(m.gpu.nvlink, 0, 1e15);
  const bool has_goal = r.goal != Goal::kDraw || (r.image && is_drawable(*r.image));
  bool has_sizes = within(r.context, 1, 1e16) && within(r.concurrency, 1, 1e16) && within(r.prompt, 1, 1e16) &&
                   within(r.generated, 1, 1e16) && within(r.cache_bytes, 0.25, 8) && within(r.draft, 0, 65536) &&
                   within(r.acceptance, 0, 1) && within(r.sequence, 1, 1e16) && within(r.global_batch, 0, 1e16) &&
                   within(r.tokens, 0, 1e16) && within(r.width, 64, 16384) && within(r.height, 64, 16384) &&
                   within(r.steps, 0, 65536) && within(r.file_bytes, 0, 1e16) && within(r.tensor, 0, 65536) &&
                   within(r.pipeline, 0, 65536) && within(r.replicas, 0, 65536);
  for (const RankWeights& packed : r.rank_weights) {
    has_sizes = has_sizes && within(packed.ranks, 1, 65536) && within(packed.bytes, 0, 1e15) &&
                within(packed.work_space, 0, 1e15) && within(packed.stages, 1, 65536) &&
                within(packed.layers_part, 0, 1);
  }
  const bool has_shape = r.goal == Goal::kDraw || spec::is_plausible(r.model);
  if (has_machines && has_goal && has_sizes && has_shape) return;
  throw Error(ErrorCode::kInvalid, fmt::format("{}: this request makes no sense", document.where),
              has_machines ? "its model or its numbers are out of range" : "its machines are out of range");
}

}  // namespace

Document to_json(const Request& request) {
  RequestFields fields{.request = request, .format = std::string(request.format.name), .model = {}};
  if (request.goal != Goal::kDraw) fields.model = request.model;
  return write_fields(fields);
}

void from_json(const Document& document, Request& request) {
  RequestFields fields = from_json<RequestFields>(document);
  request = std::move(fields.request);
  if (fields.model) request.model = std::move(*fields.model);
  const WeightFormat* const format = find_format(fields.format);
  if (!format) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: no format is called '{}'", document.where, printable(fields.format, 40)));
  }
  request.format = *format;
  const spec::HardwareFacts* const facts = spec::find_hardware_facts(request.machines.hardware);
  if (!facts) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: no machine is called '{}'", document.where, printable(request.machines.hardware, 40)));
  }
  request.machines.facts = facts;
  request.machines.kind = machines_of(*facts, 1).kind;
  refuse_absurd(document, request);
}

}  // namespace yoke::plan
