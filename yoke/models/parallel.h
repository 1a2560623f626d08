// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): a weight is cut over the ranks of a mesh, by its outputs or
// by its inputs, and only activations cross the link.
//
//   by outputs      each rank has some:  y[T, N / R] = x[T, K] W^T       no exchange
//   by inputs       each rank has some:  y[T, N]     = sum over ranks    one all-reduce
//   by vocabulary   each rank has some tokens: embedding: one all-reduce; logits of its own tokens: no exchange
//
// A linear cut by outputs into one cut by inputs therefore costs one all-reduce for both. Reductions add in the order
// of ranks, so all ranks hold the same bits. Where ranks cannot share a layer, layers are cut into stages instead (or
// besides), and activations go from stage to stage. A PartLoader gives each rank its part and nothing else.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "yoke/base/units.h"
#include "yoke/comm/communicator.h"
#include "yoke/ops/backend.h"
#include "yoke/weights/weight_source.h"

namespace yoke::models {

// Who talks to whom; made again with every group.
struct MeshGroups {
  comm::Communicator* tensor = nullptr;  // those that share each weight; may be missing where there is one
  comm::Communicator* world = nullptr;   // all ranks, for what goes from stage to stage
};

// The place of one rank among those that share a model.
struct Mesh {
  int rank = 0;  // among the ranks that share each weight
  int size = 1;
  int stage = 0;
  int stages = 1;
  tensor::Range layers{0, -1};  // of this stage; an end of -1: all
  MeshGroups groups = {};

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == stages; }
  tensor::Range layers_of(std::int64_t all) const { return layers.end < 0 ? tensor::Range{0, all} : layers; }

  void sum(ops::Backend& ops, const ops::Slab& values) const;  // over the ranks that share weights, in place
  // From the first of them to the others.
  void share(ops::Backend& ops, const ops::Slab& values) const;
  // Activations to the same tensor rank of the next stage, and from that of the previous one.
  void send_on(ops::Backend& ops, const ops::Slab& values) const;
  void take_over(ops::Backend& ops, const ops::Slab& values) const;
};

struct MatrixShape {
  std::int64_t rows = 0;     // outputs
  std::int64_t columns = 0;  // inputs
};

enum class Bias { kNone, kGiven };

// One weight of a stack: its name, its whole shape, and which part of it this rank takes.
struct StackPart {
  std::string module;
  MatrixShape whole;
  tensor::Slice slice;
  Bias bias = Bias::kNone;
};

// A stack as it was loaded, with the biases of its parts side by side.
struct LoadedStack {
  std::unique_ptr<ops::PackedStack> weight;
  std::unique_ptr<ops::SlabMemory> bias;  // f32 [rows]; null where no part has one

  void operator()(ops::Backend& ops, const ops::Slab& x, const ops::Slab& y,
                  ops::Activation activation = ops::Activation::kNone) const;
};

// Reads a rank's parts. The same code counts what will be needed, asks the source to read ahead, and loads: so the
// three never differ.
class PartLoader {
 public:
  enum class Mode { kCount, kHint, kLoad };
  PartLoader(const weights::WeightSource& source, const Mesh& mesh, ops::Backend& ops, Mode mode)
      : source_(source), mesh_(mesh), ops_(&ops), counting_(ops), mode_(mode) {}
  // Counts only.
  PartLoader(const weights::WeightSource& source, const Mesh& mesh, const ops::Backend& ops)
      : source_(source), mesh_(mesh), counting_(ops), mode_(Mode::kCount) {}

  const weights::WeightSource& source() const { return source_; }
  const Mesh& mesh() const { return mesh_; }
  Bytes bytes() const { return bytes_; }  // of all that was loaded, as it lies in memory; hinted: as it is stored

  // Into `stack`, when finish() is called: stacks are packed side by side. Error(kInvalid) where the source holds
  // another shape than config.json promises. Biases of what is cut by inputs are for the first rank only, so that they
  // are added once.
  void stack(std::vector<StackPart> parts, ops::MatrixUse use, LoadedStack& stack);
  // A norm's weights, as f32.
  std::unique_ptr<ops::SlabMemory> vector(const std::string& name, std::int64_t elements);
  void finish();

 private:
  struct Job {
    std::vector<StackPart> parts;
    ops::MatrixUse use;
    LoadedStack* target;
  };
  void load_bias(const std::vector<StackPart>& parts, LoadedStack& stack);
  std::unique_ptr<ops::SlabMemory> upload(std::span<const float> values);
  void run(const Job& job);

  const weights::WeightSource& source_;
  Mesh mesh_;
  ops::Backend* ops_ = nullptr;  // null where nothing is loaded
  const ops::Backend& counting_;
  Mode mode_;
  Bytes bytes_;
  std::vector<Job> jobs_;
};

// Rows of an embedding or of a head. Parts may differ in size by a row, or by as many as must stay together.
struct VocabularyPart {
  LoadedStack table;
  tensor::Range range;  // the tokens that this rank has

  void load(PartLoader& loader, const std::string& module, MatrixShape whole, ops::MatrixUse use);
  void embed(ops::Backend& ops, const Mesh& mesh, const ops::Slab& x) const;  // the step's tokens, [T, C]
};

// Part `rank` of `size` parts of an extent, as equal as multiples of `step` allow.
tensor::Range near_equal_part(std::int64_t extent, std::int64_t step, int rank, int size);

}  // namespace yoke::models
