// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): a weight is cut over the ranks of a mesh, by its outputs or
// by its inputs, and only activations cross the link.
//
//   ColumnLinear  each rank has some outputs:    y[T, N / R] = x[T, K] W^T           no exchange
//   RowLinear     each rank has some inputs:     y[T, N]     = sum over ranks        one all-reduce
//   VocabularyPart  each rank has some tokens:     embed: one all-reduce; logits of its own tokens: no exchange
//
// A column linear into a row linear thus costs one all-reduce for both. Reductions add in the order of ranks, so all
// ranks hold the same bits. A PartLoader gives each rank its part and nothing else of the files.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "yoke/base/units.h"
#include "yoke/comm/communicator.h"
#include "yoke/ops/backend.h"
#include "yoke/weights/model_files.h"

namespace yoke {

// The ranks that share one model. `comm` may be missing where nothing is computed, or there is one rank.
struct Mesh {
  int rank = 0;
  int size = 1;
  Communicator* comm = nullptr;

  void sum(Backend& ops, const Tensor& values) const;  // over all ranks, in place
};

struct MatrixShape {
  std::int64_t rows = 0;     // outputs
  std::int64_t columns = 0;  // inputs
};

// Reads a rank's parts. Without a backend nothing is read but what describes the tensors, and only bytes() counts: so
// the same code loads a model and tells what it will need.
class PartLoader {
 public:
  PartLoader(const ModelFiles& files, const Mesh& mesh, Backend* ops) : files_(files), mesh_(mesh), ops_(ops) {}

  const ModelFiles& files() const { return files_; }
  const Mesh& mesh() const { return mesh_; }
  Bytes bytes() const { return bytes_; }  // of all that was loaded, as it lies in memory

  // A part of a weight that is [rows, columns] as a whole, or of a vector of so many elements; Error(kInvalid) where
  // the files hold another shape than config.json promises.
  std::unique_ptr<PackedMatrix> matrix(const std::string& module, MatrixShape whole, const Slice& slice);
  Tensor vector(const std::string& name, std::int64_t elements, const Slice& slice = {});

 private:
  const ModelFiles& files_;
  Mesh mesh_;
  Backend* ops_;
  Bytes bytes_;
};

enum class Bias { kNone, kGiven };

class ColumnLinear {
 public:
  // `rows` is this rank's part of the outputs.
  void load(PartLoader& loader, const std::string& module, MatrixShape whole, Range rows, Bias bias);
  Tensor operator()(Backend& ops, const Tensor& x) const;  // [T, K] → [T, rows]

 private:
  std::unique_ptr<PackedMatrix> weight_;
  Tensor bias_;
};

class RowLinear {
 public:
  // `columns` is this rank's part of the inputs.
  void load(PartLoader& loader, const std::string& module, MatrixShape whole, Range columns, Bias bias);
  Tensor operator()(Backend& ops, const Mesh& mesh, const Tensor& x) const;  // [T, columns] → [T, N]

 private:
  std::unique_ptr<PackedMatrix> weight_;
  Tensor bias_;  // on rank 0 only, so that it is added once
};

// Rows of an embedding or of a head. Parts may differ in size by a row, or by as many as must stay together.
class VocabularyPart {
 public:
  void load(PartLoader& loader, const std::string& module, MatrixShape whole);
  Range range() const { return range_; }  // the tokens that this rank has

  Tensor embed(Backend& ops, const Mesh& mesh, std::span<const std::int32_t> ids) const;  // [T, C]
  Tensor logits(Backend& ops, const Tensor& x) const;                                     // [T, range().size()]

 private:
  std::unique_ptr<PackedMatrix> table_;
  Range range_;
};

// Part `rank` of `size` parts of an extent, as equal as multiples of `step` allow.
Range near_equal_part(std::int64_t extent, std::int64_t step, int rank, int size);

}  // namespace yoke
