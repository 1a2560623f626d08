// What a model takes of each rank's memory, before anything is loaded.
#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/models/llama/llama.h"

namespace yoke {
Bytes llama_weight_bytes(const ModelFiles& files, const LlamaConfig& config, int ranks) {
  const Mesh mesh{.rank = ranks - 1, .size = ranks};  // the last part of a vocabulary is the largest
  PartLoader ends(files, mesh, nullptr);
  VocabularyPart embedding, head;
  Tensor norm;
  Llama::load_ends(ends, config, embedding, head, norm);
  PartLoader layers(files, mesh, nullptr);
  const LlamaPart part = part_of(config, mesh.rank, mesh.size);
  for (std::int64_t index = 0; index < config.L; ++index) {
    Llama::Layer layer;
    Llama::load_layer(layers, config, part, index, layer);
  }
  return ends.bytes() + layers.bytes();
}

Bytes llama_cache_bytes_per_token(const LlamaConfig& config, int ranks, DType type) {
  const std::int64_t heads = part_of(config, 0, ranks).kv_heads.size();
  return Bytes{2 * config.L * heads * config.D * static_cast<std::int64_t>(size_of(type))};
}

std::vector<int> llama_rank_counts(const ModelFiles& files, const LlamaConfig& config, int most) {
  std::vector<int> counts;
  for (int ranks = 1; ranks <= most; ++ranks) {
    try {
      PartLoader loader(files, {.rank = 0, .size = ranks}, nullptr);
      Llama::Layer layer;
      Llama::load_layer(loader, config, part_of(config, 0, ranks), 0, layer);
      counts.push_back(ranks);
    } catch (const Error&) {
      continue;
    }
  }
  return counts;
}

}  // namespace yoke
