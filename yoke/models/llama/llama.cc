#include "yoke/models/llama/llama.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "yoke/base/check.h"

namespace yoke {

Llama::Llama(const ModelFiles& files, LlamaConfig config, const Mesh& mesh, Backend& ops)
    : config_(std::move(config)),
      mesh_(mesh),
      part_(part_of(config_, mesh.rank, mesh.size)),
      ops_(ops),
      loader_(files, mesh, &ops) {
  llama_weight_bytes(files, config_, mesh.size);  // throws where something is missing
}

void Llama::load_step() {
  YOKE_CHECK(steps_loaded_ < load_steps(), "all {} steps are done", steps_loaded_);
  if (steps_loaded_ == 0) {
    load_ends(loader_, config_, embedding_, head_, norm_);
  } else {
    layers_.emplace_back();
    load_layer(loader_, config_, part_, steps_loaded_ - 1, layers_.back());
  }
  ++steps_loaded_;
}

void Llama::load_ends(PartLoader& loader, const LlamaConfig& config, VocabularyPart& embedding, VocabularyPart& head,
                      Tensor& norm) {
  embedding.load(loader, "model.embed_tokens", {config.V, config.C});
  if (!config.tied) head.load(loader, "lm_head", {config.V, config.C});
  norm = loader.vector("model.norm.weight", config.C);
}

void Llama::load_layer(PartLoader& loader, const LlamaConfig& config, const LlamaPart& part, std::int64_t index,
                       Layer& layer) {
  const std::int64_t C = config.C;
  const std::int64_t D = config.D;
  const std::string at = fmt::format("model.layers.{}.", index);
  const Range heads{part.heads.begin * D, part.heads.end * D};
  const Range kv_heads{part.kv_heads.begin * D, part.kv_heads.end * D};
  layer.attention_norm = loader.vector(at + "input_layernorm.weight", C);
  layer.q.load(loader, at + "self_attn.q_proj", {config.H * D, C}, heads, config.qkv_bias);
  layer.k.load(loader, at + "self_attn.k_proj", {config.Hkv * D, C}, kv_heads, config.qkv_bias);
  layer.v.load(loader, at + "self_attn.v_proj", {config.Hkv * D, C}, kv_heads, config.qkv_bias);
  layer.o.load(loader, at + "self_attn.o_proj", {C, config.H * D}, heads, config.o_bias);
  if (config.qk_norm) {
    layer.q_norm = loader.vector(at + "self_attn.q_norm.weight", D);
    layer.k_norm = loader.vector(at + "self_attn.k_norm.weight", D);
  }
  layer.mlp_norm = loader.vector(at + "post_attention_layernorm.weight", C);
  layer.gate.load(loader, at + "mlp.gate_proj", {config.F, C}, part.mlp, config.mlp_bias);
  layer.up.load(loader, at + "mlp.up_proj", {config.F, C}, part.mlp, config.mlp_bias);
  layer.down.load(loader, at + "mlp.down_proj", {C, config.F}, part.mlp, config.mlp_bias);
}

KvCache Llama::allocate_cache(std::int64_t pages, std::int64_t page_tokens, DType type) const {
  KvCache cache;
  for (std::int64_t layer = 0; layer < config_.L; ++layer) {
    const Shape shape{pages, part_.kv_heads.size(), page_tokens, config_.D};
    cache.keys.push_back(ops_.allocate(shape, type));
    cache.values.push_back(ops_.allocate(shape, type));
  }
  return cache;
}

Tensor Llama::forward(const LlamaBatch& batch, const KvCache& cache) const {
  YOKE_CHECK_EQ(steps_loaded_, load_steps());
  const Tensor x = embedding_.embed(ops_, mesh_, batch.ids);  // [T, C]
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const KvView view{cache.keys[i], cache.values[i], batch.sequences};
    ops_.add(attention(layer, normed(x, layer.attention_norm), batch, view, config_.windows[i]), x);
    ops_.add(mlp(layer, normed(x, layer.mlp_norm)), x);
  }
  return head().logits(ops_, normed(rows_of(x, batch.logit_rows), norm_));
}

Tensor Llama::attention(const Layer& layer, const Tensor& x, const LlamaBatch& batch, const KvView& view,
                        std::int64_t window) const {
  const std::int64_t T = x.extent(0);
  const std::int64_t H = part_.heads.size();
  const std::int64_t Hkv = part_.kv_heads.size();
  const std::int64_t D = config_.D;
  Tensor q = layer.q(ops_, x);        // [T, H * D]
  Tensor k = layer.k(ops_, x);        // [T, Hkv * D]
  const Tensor v = layer.v(ops_, x);  // [T, Hkv * D]
  if (config_.qk_norm) {              // of each head
    q = normed(q.reshaped({T * H, D}), layer.q_norm);
    k = normed(k.reshaped({T * Hkv, D}), layer.k_norm);
  }
  q = q.reshaped({T, H, D});
  k = k.reshaped({T, Hkv, D});
  ops_.rotate(q, batch.positions, config_.rope);
  ops_.rotate(k, batch.positions, config_.rope);
  ops_.store_kv(k, v.reshaped({T, Hkv, D}), view);
  ops_.attend(q, view, q, {.scale = 1 / std::sqrt(static_cast<float>(D)), .window = window});
  return layer.o(ops_, mesh_, q.reshaped({T, H * D}));
}

Tensor Llama::mlp(const Layer& layer, const Tensor& x) const {
  const Tensor gate = layer.gate(ops_, x);
  ops_.swiglu(gate, layer.up(ops_, x), gate);
  return layer.down(ops_, mesh_, gate);
}

Tensor Llama::normed(const Tensor& x, const Tensor& weight) const {
  Tensor y = ops_.allocate(x.shape(), DType::kF32);
  ops_.rms_norm(x, weight, config_.epsilon, y);
  return y;
}

Tensor Llama::rows_of(const Tensor& x, const std::vector<std::int64_t>& rows) const {
  if (std::ssize(rows) == x.extent(0)) return x;
  ops_.wait();
  Tensor some = ops_.allocate({std::ssize(rows), x.extent(1)}, DType::kF32);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(some.mutable_row<float>(static_cast<std::int64_t>(i)), x.row<float>(rows[i]),
                static_cast<std::size_t>(x.extent(1)) * sizeof(float));
  }
  return some;
}

}  // namespace yoke
