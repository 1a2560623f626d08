// What a model of this kind takes of each rank, before anything is loaded.
#include "yoke/base/error.h"
#include "yoke/models/llama/llama.h"

namespace yoke::models::llama {
namespace {

// Parts of a vocabulary differ by what must stay together: a block of scales, 128 rows in all files that we know.
constexpr std::int64_t kMaxRowStep = 1024;

}  // namespace

LlamaOutline::LlamaOutline(LlamaConfig config, std::string family)
    : config_(std::move(config)),
      facts_{.family = std::move(family),
             .layers = config_.L,
             .width = config_.C,
             .vocabulary = config_.V,
             .context = config_.context} {}

std::unique_ptr<FeedForward> LlamaOutline::feed_forward(std::int64_t, const Mesh& mesh) const {
  return std::make_unique<DenseMlp>(config_.C, config_.F, part_of(config_, mesh.rank, mesh.size).mlp, config_.mlp_bias);
}

void LlamaOutline::try_layer(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops) const {
  PartLoader loader(source, mesh, ops);
  Llama::Layer layer;
  layer.feed_forward = feed_forward(config_.L - 1, mesh);
  load_layer(loader, config_, config_.L - 1, layer);
}

Bytes LlamaOutline::weight_bytes(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops) const {
  PartLoader loader(source, mesh, ops);
  Llama::Ends ends;
  load_ends(loader, config_, ends);
  const tensor::Range layers = mesh.layers_of(config_.L);
  for (std::int64_t index = layers.begin; index < layers.end; ++index) {
    Llama::Layer layer;
    layer.feed_forward = feed_forward(index, mesh);
    load_layer(loader, config_, index, layer);
  }
  return loader.bytes();
}

Bytes LlamaOutline::cache_bytes_per_token(const Mesh& mesh, tensor::DType type) const {
  const std::int64_t heads = part_of(config_, mesh.rank, mesh.size).kv_heads.size();
  return Bytes{2 * mesh.layers_of(config_.L).size() * heads * config_.D *
               static_cast<std::int64_t>(tensor::size_of(type))};
}

// The sum of what Llama::forward takes.
std::size_t LlamaOutline::arena_bytes(const StepLimits& limits, const Mesh& mesh) const {
  const LlamaPart part = part_of(config_, mesh.rank, mesh.size);
  const std::int64_t T = limits.tokens;
  const std::int64_t heads = part.heads.size() + 2 * part.kv_heads.size();
  std::size_t feed = 0;
  const tensor::Range layers = mesh.layers_of(config_.L);
  for (std::int64_t index = layers.begin; index < layers.end; ++index) {
    feed = std::max(feed, feed_forward(index, mesh)->arena_bytes(T));
  }
  const auto bytes = [](std::int64_t rows, std::int64_t width) {
    return ops::StepArena::bytes_of({rows, width}, tensor::DType::kF32);
  };
  const std::int64_t vocabulary = tensor::ceil_divide(config_.V, mesh.size) + kMaxRowStep;
  const std::size_t head =
      mesh.is_last() ? bytes(limits.logit_rows, config_.C) + bytes(limits.logit_rows, vocabulary) : 0;
  return 2 * bytes(T, config_.C) + bytes(T, heads * config_.D) + bytes(T, part.heads.size() * config_.D) +
         std::max(feed, head);
}

std::unique_ptr<LanguageModel> LlamaOutline::make(const weights::WeightSource& source, const Mesh& mesh,
                                                  ops::Backend& ops) const {
  weight_bytes(source, mesh, ops);  // throws where something is missing
  return std::make_unique<Llama>(source, config_, mesh, ops,
                                 [this](std::int64_t layer, const Mesh& place) { return feed_forward(layer, place); });
}

}  // namespace yoke::models::llama
