// A language model of the Llama kind, split over the ranks of a mesh by heads and MLP columns (parallel.h); the head by
// vocabulary. It reads as the paper does:
//
//   x = embed(ids)
//   in each layer:  x += o(attend(rope(q(norm(x))), rope(k(norm(x))), v(norm(x))))
//                   x += down(silu(gate(norm(x))) * up(norm(x)))
//   logits = head(norm(x))
//
// Loading goes in steps, so that ranks can keep pace and a newcomer can catch up. The weights stay when the group is
// rebuilt: join() gives the new communicator. One thread owns it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "yoke/models/llama/config.h"
#include "yoke/models/parallel.h"
#include "yoke/ops/backend.h"

namespace yoke {

// Keys and values of all layers, this rank's heads: pages that sequences share (ops/kv_view.h).
struct KvCache {
  std::vector<Tensor> keys, values;  // of each layer [pages, Hkv, page tokens, D]
};

// What one step computes: the fresh tokens of some sequences, one after the other.
struct LlamaBatch {
  std::vector<std::int32_t> ids;         // [T]
  std::vector<std::int64_t> positions;   // [T]
  std::vector<KvSequence> sequences;     // whose fresh tokens these are
  std::vector<std::int64_t> logit_rows;  // which of the T rows need logits, ascending
};

class Llama {
 public:
  // Checks that all weights are there and can be split so; reads none.
  Llama(const ModelFiles& files, LlamaConfig config, const Mesh& mesh, Backend& ops);

  const LlamaConfig& config() const { return config_; }
  const LlamaPart& part() const { return part_; }

  int load_steps() const { return static_cast<int>(config_.L) + 1; }
  int steps_loaded() const { return steps_loaded_; }
  Bytes bytes_loaded() const { return loader_.bytes(); }
  void load_step();

  void join(Communicator& comm) { mesh_.comm = &comm; }

  KvCache allocate_cache(std::int64_t pages, std::int64_t page_tokens, DType type) const;

  Range vocabulary() const { return head().range(); }  // the tokens whose logits this rank has
  // [logit rows, vocabulary().size()], f32.
  Tensor forward(const LlamaBatch& batch, const KvCache& cache) const;

 private:
  struct Layer {
    Tensor attention_norm, mlp_norm, q_norm, k_norm;
    ColumnLinear q, k, v, gate, up;
    RowLinear o, down;
  };
  friend Bytes llama_weight_bytes(const ModelFiles&, const LlamaConfig&, int);
  friend std::vector<int> llama_rank_counts(const ModelFiles&, const LlamaConfig&, int);

  static void load_layer(PartLoader& loader, const LlamaConfig& config, const LlamaPart& part, std::int64_t index,
                         Layer& layer);
  static void load_ends(PartLoader& loader, const LlamaConfig& config, VocabularyPart& embedding, VocabularyPart& head,
                        Tensor& norm);
  const VocabularyPart& head() const { return config_.tied ? embedding_ : head_; }

  Tensor normed(const Tensor& x, const Tensor& weight) const;
  Tensor attention(const Layer& layer, const Tensor& x, const LlamaBatch& batch, const KvView& view,
                   std::int64_t window) const;
  Tensor mlp(const Layer& layer, const Tensor& x) const;
  Tensor rows_of(const Tensor& x, const std::vector<std::int64_t>& rows) const;

  LlamaConfig config_;
  Mesh mesh_;
  LlamaPart part_;
  Backend& ops_;
  PartLoader loader_;
  int steps_loaded_ = 0;
  VocabularyPart embedding_, head_;
  Tensor norm_;
  std::vector<Layer> layers_;
};

// What each of `ranks` ranks holds, of the largest part: by the files' headers alone. Error where they cannot share the
// model so.
Bytes llama_weight_bytes(const ModelFiles& files, const LlamaConfig& config, int ranks);
Bytes llama_cache_bytes_per_token(const LlamaConfig& config, int ranks, DType type);
// The numbers of ranks, up to `most`, that can share the model.
std::vector<int> llama_rank_counts(const ModelFiles& files, const LlamaConfig& config, int most);

}  // namespace yoke
