#include "yoke/models/llama/llama.h"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke::models::llama {

Llama::Llama(const weights::WeightSource& source, LlamaConfig config, const Mesh& mesh, ops::Backend& ops,
             MakeFeedForward feed_forward)
    : source_(source),
      config_(std::move(config)),
      mesh_(mesh),
      part_(part_of(config_, mesh.rank, mesh.size)),
      layers_here_(mesh.layers_of(config_.L)),
      ops_(ops),
      feed_forward_(std::move(feed_forward)) {}

// ---- loading

void Llama::load(PartLoader& loader, int step, Layer& layer, Ends& ends) const {
  if (step == 0) return load_ends(loader, config_, ends);
  const std::int64_t index = layers_here_.begin + step - 1;
  layer.feed_forward = feed_forward_(index, mesh_);
  load_layer(loader, config_, index, layer);
}

void Llama::load_step() {
  YOKE_CHECK(steps_loaded_ < load_steps(), "all {} steps are done", steps_loaded_);
  const std::jthread reader([this, loaded = steps_loaded_, bytes = bytes_] { read_ahead(loaded, bytes); });
  PartLoader loader(source_, mesh_, ops_, PartLoader::Mode::kLoad);
  Layer layer;
  load(loader, steps_loaded_, layer, ends_);
  loader.finish();
  if (steps_loaded_ > 0) layers_.push_back(std::move(layer));
  bytes_ += loader.bytes();
  ++steps_loaded_;
}

// The disk reads this step and the next ones while this one is packed: page faults alone ask for too little at a time.
void Llama::read_ahead(int loaded, Bytes bytes) {
  constexpr Bytes kAhead{std::int64_t{512} << 20};
  try {
    while (steps_hinted_ < load_steps() && (steps_hinted_ <= loaded + 1 || hinted_ < bytes + kAhead)) {
      PartLoader hints(source_, mesh_, ops_, PartLoader::Mode::kHint);
      Layer layer;
      Ends ends;
      load(hints, steps_hinted_++, layer, ends);
      hinted_ += hints.bytes();
    }
  } catch (const Error&) {
    // Loading meets the same, and reports it.
  }
}

void load_ends(PartLoader& loader, const LlamaConfig& config, Llama::Ends& ends) {
  const Mesh& mesh = loader.mesh();
  const MatrixShape table{config.V, config.C};
  const bool serves_both = config.tied && mesh.is_last();
  if (mesh.is_first()) {
    ends.embedding.load(loader, "model.embed_tokens", table,
                        serves_both ? ops::MatrixUse::kTableAndHead : ops::MatrixUse::kTable);
  }
  if (!mesh.is_last()) return;
  // With several stages a tied table is held twice: by the first and by the last.
  if (!(config.tied && mesh.is_first())) {
    ends.head.load(loader, config.tied ? "model.embed_tokens" : "lm_head", table, ops::MatrixUse::kLinear);
  }
  ends.norm = loader.vector("model.norm.weight", config.C);
}

void load_layer(PartLoader& loader, const LlamaConfig& config, std::int64_t index, Llama::Layer& layer) {
  const std::int64_t C = config.C;
  const std::int64_t D = config.D;
  const LlamaPart part = part_of(config, loader.mesh().rank, loader.mesh().size);
  const std::string at = fmt::format("model.layers.{}.", index);
  const tensor::Slice heads = tensor::Slice::rows({part.heads.begin * D, part.heads.end * D});
  const tensor::Slice kv_heads = tensor::Slice::rows({part.kv_heads.begin * D, part.kv_heads.end * D});
  layer.attention_norm = loader.vector(at + "input_layernorm.weight", C);
  loader.stack({{at + "self_attn.q_proj", {config.H * D, C}, heads, config.qkv_bias},
                {at + "self_attn.k_proj", {config.Hkv * D, C}, kv_heads, config.qkv_bias},
                {at + "self_attn.v_proj", {config.Hkv * D, C}, kv_heads, config.qkv_bias}},
               ops::MatrixUse::kLinear, layer.qkv);
  loader.stack({{at + "self_attn.o_proj", {C, config.H * D}, tensor::Slice::columns(heads.range), config.o_bias}},
               ops::MatrixUse::kLinear, layer.o);
  if (config.qk_norm) {
    layer.q_norm = loader.vector(at + "self_attn.q_norm.weight", D);
    layer.k_norm = loader.vector(at + "self_attn.k_norm.weight", D);
  }
  layer.mlp_norm = loader.vector(at + "post_attention_layernorm.weight", C);
  layer.feed_forward->load(loader, at);
}

KvCache Llama::allocate_cache(const ops::PageRoom& room, tensor::DType type) const {
  KvCache cache;
  cache.room = room;
  const tensor::Shape shape{room.pages, part_.kv_heads.size(), room.page_tokens, config_.D};
  for (std::int64_t layer = 0; layer < layers_here_.size(); ++layer) {
    cache.memory.push_back(ops_.allocate(shape, type));
    cache.memory.push_back(ops_.allocate(shape, type));
    cache.layers.push_back({cache.memory[cache.memory.size() - 2]->slab(), cache.memory.back()->slab()});
  }
  return cache;
}

// ---- a step

tensor::Range Llama::vocabulary() const { return mesh_.is_last() ? head().range : tensor::Range{}; }

ops::Slab Llama::forward(const ops::StepBatch& batch, const KvCache& cache, const ops::Slab& x,
                         ops::StepArena& arena) const {
  YOKE_CHECK_EQ(steps_loaded_, load_steps());
  arena.reset();
  const std::int64_t T = batch.tokens();
  const std::int64_t H = part_.heads.size();
  const std::int64_t heads = H + 2 * part_.kv_heads.size();
  const Activations now{.x = x,
                        .normed = arena.take({T, config_.C}, tensor::DType::kF32),
                        .qkv = arena.take({T, heads * config_.D}, tensor::DType::kF32),
                        .q = arena.take({T, H, config_.D}, tensor::DType::kF32),
                        .y = arena.take({T, config_.C}, tensor::DType::kF32)};
  ops_.begin_step(batch, cache.room, config_.rope);
  if (mesh_.is_first()) ends_.embedding.embed(ops_, mesh_, now.x);
  const ops::Slab* y = nullptr;  // what the layer before adds to x
  const ops::StepArena::Mark mark = arena.mark();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const std::int64_t window = config_.windows[static_cast<std::size_t>(layers_here_.begin) + i];
    ops_.norm(y, now.x, layer.attention_norm->slab(), config_.epsilon, now.normed);
    attention(layer, cache.layers[i], window, now);
    ops_.norm(&now.y, now.x, layer.mlp_norm->slab(), config_.epsilon, now.normed);
    layer.feed_forward->run(ops_, mesh_, arena, now.normed, now.y);
    mesh_.sum(ops_, now.y);
    arena.back_to(mark);
    y = &now.y;
  }
  if (mesh_.is_last()) return logits(now, batch, arena, y);
  if (y != nullptr) ops_.add(*y, now.x);
  return {0, {0, 0}, tensor::DType::kF32};
}

void Llama::attention(const Layer& layer, const ops::CacheLayer& cache, std::int64_t window,
                      const Activations& now) const {
  const std::int64_t T = now.x.extent(0);
  const std::int64_t H = part_.heads.size();
  const std::int64_t D = config_.D;
  layer.qkv(ops_, now.normed, now.qkv);
  ops_.place_heads(now.qkv,
                   {.heads = H,
                    .kv_heads = part_.kv_heads.size(),
                    .width = D,
                    .q_norm = config_.qk_norm ? &layer.q_norm->slab() : nullptr,
                    .k_norm = config_.qk_norm ? &layer.k_norm->slab() : nullptr,
                    .epsilon = config_.epsilon},
                   cache, now.q);
  ops_.attend(now.q, cache, now.q, {.scale = 1 / std::sqrt(static_cast<float>(D)), .window = window});
  layer.o(ops_, now.q.reshaped({T, H * D}), now.y);
  mesh_.sum(ops_, now.y);
}

ops::Slab Llama::logits(const Activations& now, const ops::StepBatch& batch, ops::StepArena& arena,
                        const ops::Slab* y) const {
  const std::int64_t rows = std::ssize(batch.logit_rows);
  const ops::Slab picked = arena.take({rows, config_.C}, tensor::DType::kF32);
  const ops::Slab logits = arena.take({rows, head().range.size()}, tensor::DType::kF32);
  ops_.norm(y, now.x, ends_.norm->slab(), config_.epsilon, now.normed);
  states_ = now.normed;
  ops_.pick_rows(now.normed, picked);
  head().table(ops_, picked, logits);
  return logits;
}

}  // namespace yoke::models::llama
