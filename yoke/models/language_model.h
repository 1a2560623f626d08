// A language model as the engine sees it, whatever its family: an outline that tells from config and headers alone what
// ranks would hold, and the model that the outline makes. families.h knows which there are.
//
//   const auto outline = outline_model(source.config());
//   auto model = outline->make(source, mesh, *ops);
//   while (model->steps_loaded() < model->load_steps()) model->load_step();
//   model->join(&comm);
//   const Slab logits = model->forward(batch, cache, x, arena);
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "yoke/models/parallel.h"
#include "yoke/ops/arena.h"
#include "yoke/ops/backend.h"
#include "yoke/weights/weight_source.h"

namespace yoke::models {

struct LanguageFacts {
  std::string family;
  std::int64_t layers = 0, width = 0, vocabulary = 0;
  std::int64_t context = 0;  // tokens that it was trained for
};

// Keys and values of a stage's layers, this rank's heads: pages that sequences share (ops/step.h).
struct KvCache {
  std::vector<std::unique_ptr<ops::SlabMemory>> memory;
  std::vector<ops::CacheLayer> layers;
  ops::PageRoom room;
};

// The largest step there will be.
struct StepLimits {
  std::int64_t tokens = 0;      // rows of activations
  std::int64_t logit_rows = 0;  // rows that go to the head
};

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  // Loading goes in steps, so that ranks can keep pace and a newcomer can catch up.
  virtual int load_steps() const = 0;
  virtual int steps_loaded() const = 0;
  virtual void load_step() = 0;
  virtual Bytes bytes_loaded() const = 0;

  // The communicators of a (rebuilt) group; weights stay.
  virtual void join(const MeshGroups& groups) = 0;
  virtual KvCache allocate_cache(const ops::PageRoom& room, tensor::DType type) const = 0;

  virtual tensor::Range vocabulary() const = 0;  // the tokens whose logits this rank has; empty before the last stage
  // [logit rows, vocabulary().size()] on the last stage; elsewhere no rows. `x` [tokens, width] are the activations:
  // the first stage fills them, a later one finds there what the stage before it left. The arena is reset first.
  virtual ops::Slab forward(const ops::StepBatch& batch, const KvCache& cache, const ops::Slab& x,
                            ops::StepArena& arena) const = 0;
  // What the last forward() put into the head before rows were picked: [tokens, width] after the last norm, the same on
  // all ranks of the last stage; elsewhere no rows. Good until the arena is reset.
  virtual ops::Slab states() const = 0;
};

class ModelOutline {
 public:
  virtual ~ModelOutline() = default;
  virtual const LanguageFacts& facts() const = 0;
  // Error(kInvalid) where so many ranks cannot share a layer; its hint names the numbers that can.
  virtual void check_split(int ranks) const = 0;
  // What a rank of the mesh holds, packed by this backend; of the largest part of the vocabulary. Nothing is read but
  // what describes the tensors; what is missing is an Error.
  virtual Bytes weight_bytes(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops) const = 0;
  virtual Bytes cache_bytes_per_token(const Mesh& mesh, tensor::DType type) const = 0;
  virtual std::size_t arena_bytes(const StepLimits& limits, const Mesh& mesh) const = 0;
  // The outline must outlive the model.
  virtual std::unique_ptr<LanguageModel> make(const weights::WeightSource& source, const Mesh& mesh,
                                              ops::Backend& ops) const = 0;

  // The numbers of tensor-parallel ranks, up to `most`, that can share the model.
  std::vector<int> rank_counts(const weights::WeightSource& source, const ops::Backend& ops, int most) const;

 protected:
  // One layer, to see whether it can be cut so.
  virtual void try_layer(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops) const = 0;
};

}  // namespace yoke::models
