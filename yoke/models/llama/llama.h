// A decoder of the Llama kind, split over the ranks of a mesh by heads and MLP columns (parallel.h), the head by
// vocabulary, layers by stages. It reads as the paper does:
//
//   x = embed(ids)
//   in each layer:  x += o(attend(rope(q(norm(x))), rope(k(norm(x))), v(norm(x))))
//                   x += feed_forward(norm(x))
//   logits = head(norm(x))
//
// What a family has after attention it gives as a FeedForward for each layer: the dense MLP of Llama, or experts. One
// thread owns it.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "yoke/models/language_model.h"
#include "yoke/models/llama/config.h"
#include "yoke/models/llama/feed_forward.h"

namespace yoke::models::llama {

using MakeFeedForward = std::function<std::unique_ptr<FeedForward>(std::int64_t layer, const Mesh& mesh)>;

class Llama final : public LanguageModel {
 public:
  Llama(const weights::WeightSource& source, LlamaConfig config, const Mesh& mesh, ops::Backend& ops,
        MakeFeedForward feed_forward);

  int load_steps() const override { return static_cast<int>(layers_here_.size()) + 1; }
  int steps_loaded() const override { return steps_loaded_; }
  Bytes bytes_loaded() const override { return bytes_; }
  void load_step() override;

  void join(const MeshGroups& groups) override { mesh_.groups = groups; }
  KvCache allocate_cache(const ops::PageRoom& room, tensor::DType type) const override;

  tensor::Range vocabulary() const override;
  ops::Slab states() const override { return states_; }
  ops::Slab forward(const ops::StepBatch& batch, const KvCache& cache, const ops::Slab& x,
                    ops::StepArena& arena) const override;

  struct Layer {
    std::unique_ptr<ops::SlabMemory> attention_norm, mlp_norm, q_norm, k_norm;
    LoadedStack qkv, o;
    std::unique_ptr<FeedForward> feed_forward;
  };
  struct Ends {
    VocabularyPart embedding, head;
    std::unique_ptr<ops::SlabMemory> norm;
  };

 private:
  // The activations of a step.
  struct Activations {
    ops::Slab x, normed, qkv, q, y;
  };
  void attention(const Layer& layer, const ops::CacheLayer& cache, std::int64_t window, const Activations& now) const;
  ops::Slab logits(const Activations& now, const ops::StepBatch& batch, ops::StepArena& arena,
                   const ops::Slab* y) const;
  void load(PartLoader& loader, int step, Layer& layer, Ends& ends) const;
  void read_ahead(int loaded, Bytes bytes);
  const VocabularyPart& head() const { return config_.tied && mesh_.is_first() ? ends_.embedding : ends_.head; }

  const weights::WeightSource& source_;
  LlamaConfig config_;
  Mesh mesh_;
  LlamaPart part_;
  tensor::Range layers_here_;
  ops::Backend& ops_;
  MakeFeedForward feed_forward_;
  mutable ops::Slab states_{0, {0, 0}, tensor::DType::kF32};  // of the last step
  Bytes bytes_;
  int steps_loaded_ = 0;
  Bytes hinted_;
  int steps_hinted_ = 0;  // that the source was asked to read ahead
  Ends ends_;
  std::vector<Layer> layers_;
};

// What a mesh's rank loads: of one layer, and of what lies before and after all of them.
void load_layer(PartLoader& loader, const LlamaConfig& config, std::int64_t index, Llama::Layer& layer);
void load_ends(PartLoader& loader, const LlamaConfig& config, Llama::Ends& ends);

class LlamaOutline : public ModelOutline {
 public:
  explicit LlamaOutline(LlamaConfig config, std::string family = "llama");

  const LanguageFacts& facts() const override { return facts_; }
  void check_split(int ranks) const override { part_of(config_, 0, ranks); }
  Bytes weight_bytes(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops) const override;
  Bytes cache_bytes_per_token(const Mesh& mesh, tensor::DType type) const override;
  std::size_t arena_bytes(const StepLimits& limits, const Mesh& mesh) const override;
  std::unique_ptr<LanguageModel> make(const weights::WeightSource& source, const Mesh& mesh,
                                      ops::Backend& ops) const override;

 protected:
  // The dense MLP, where a family does not say otherwise.
  virtual std::unique_ptr<FeedForward> feed_forward(std::int64_t layer, const Mesh& mesh) const;
  void try_layer(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops) const override;

  LlamaConfig config_;
  LanguageFacts facts_;
};

}  // namespace yoke::models::llama
