#include "yoke/models/qwen3_moe/qwen3_moe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/spec/model_config.h"

namespace yoke::models::qwen3_moe {
namespace {

template <class T>
T moe_value_or(const Document& config, const char* key, T otherwise) {
  const Document* const value = config.find(key);
  return value != nullptr && value->kind != Document::Kind::kNull ? from_json<T>(*value) : otherwise;
}

}  // namespace

Qwen3MoeConfig read_qwen3_moe_config(const Document& document) {
  const spec::ModelShape shape = spec::model_shape_from_config(document);
  Qwen3MoeConfig config{.base = llama::read_llama_config(document),
                        .experts = shape.experts,
                        .experts_used = shape.experts_used,
                        .expert_width = shape.expert_width,
                        .renormalize = moe_value_or(document, "norm_topk_prob", false)};
  const auto step = moe_value_or<std::int64_t>(document, "decoder_sparse_step", 1);
  if (step < 1) refuse_field(*document.find("decoder_sparse_step"), "a positive number");
  const auto dense = moe_value_or(document, "mlp_only_layers", std::vector<std::int64_t>{});
  for (std::int64_t layer = 0; layer < config.base.L; ++layer) {
    const bool is_dense = std::find(dense.begin(), dense.end(), layer) != dense.end();
    config.sparse.push_back(!is_dense && (layer + 1) % step == 0);
  }
  // Where every layer has experts, nothing has the width of the dense MLP.
  const bool any_dense = std::find(config.sparse.begin(), config.sparse.end(), false) != config.sparse.end();
  if (!any_dense) config.base.F = config.expert_width;
  return config;
}

void ExpertsMlp::load(PartLoader& loader, const std::string& at) {
  const std::int64_t C = config_.base.C;
  const std::int64_t F = config_.expert_width;
  loader.stack({{.module = at + "mlp.gate", .whole = {config_.experts, C}, .slice = {}}}, ops::MatrixUse::kLinear,
               router_);
  std::vector<StackPart> gate_up, down;
  for (std::int64_t e = 0; e < config_.experts; ++e) {
    const std::string expert = fmt::format("{}mlp.experts.{}.", at, e);
    gate_up.push_back({.module = expert + "gate_proj", .whole = {F, C}, .slice = tensor::Slice::rows(columns_)});
    gate_up.push_back({.module = expert + "up_proj", .whole = {F, C}, .slice = tensor::Slice::rows(columns_)});
    down.push_back({.module = expert + "down_proj", .whole = {C, F}, .slice = tensor::Slice::columns(columns_)});
  }
  loader.stack(std::move(gate_up), ops::MatrixUse::kExpertGateUp, gate_up_);
  loader.stack(std::move(down), ops::MatrixUse::kExpertDown, down_);
}

std::size_t ExpertsMlp::arena_bytes(std::int64_t tokens) const {
  return ops::StepArena::bytes_of({tokens, config_.experts}, tensor::DType::kF32) +
         ops::StepArena::bytes_of({2, tokens, config_.experts_used}, tensor::DType::kF32);
}

void ExpertsMlp::run(ops::Backend& ops, const Mesh& mesh, ops::StepArena& arena, const ops::Slab& x,
                     const ops::Slab& y) const {
  const std::int64_t T = x.extent(0);
  const std::int64_t k = config_.experts_used;
  const ops::Slab scores = arena.take({T, config_.experts}, tensor::DType::kF32);
  const ops::Slab choice = arena.take({2, T, k}, tensor::DType::kI32);  // ids, then weights: one message
  const ops::Slab ids = choice.rows({0, 1}).reshaped({T, k});
  const ops::Slab weights = choice.rows({1, 2}).reshaped({T, k}).as(tensor::DType::kF32);
  router_(ops, x, scores);
  ops.route(scores, {.count = k, .renormalize = config_.renormalize}, ids, weights);
  mesh.share(ops, choice);
  ops.experts(*gate_up_.weight, *down_.weight, x, ids, weights, y);
}

void Qwen3MoeOutline::check_split(int ranks) const {
  const auto works = [&](int count) {
    const llama::LlamaConfig& c = config_;
    const bool kv = c.Hkv % count == 0 || count % c.Hkv == 0;
    return kv && c.H % count == 0 && c.F % count == 0 && moe_.expert_width % count == 0;
  };
  if (works(ranks)) return;
  std::vector<int> counts;
  for (int count = 1; count <= 64; ++count) {
    if (works(count)) counts.push_back(count);
  }
  throw Error(ErrorCode::kInvalid,
              fmt::format("{} ranks cannot share {} query heads, {} heads of keys and values and experts of width {}",
                          ranks, config_.H, config_.Hkv, moe_.expert_width),
              fmt::format("numbers of ranks that work: {}", fmt::join(counts, ", ")));
}

std::unique_ptr<llama::FeedForward> Qwen3MoeOutline::feed_forward(std::int64_t layer, const Mesh& mesh) const {
  if (!moe_.sparse[static_cast<std::size_t>(layer)]) return models::llama::LlamaOutline::feed_forward(layer, mesh);
  return std::make_unique<ExpertsMlp>(moe_, tensor::equal_part(moe_.expert_width, mesh.rank, mesh.size));
}

}  // namespace yoke::models::qwen3_moe
