#include "yoke/models/parallel.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/check.h"
#include "yoke/base/error.h"

namespace yoke {

void Mesh::sum(Backend& ops, const Tensor& values) const {
  if (size == 1) return;
  YOKE_CHECK(comm != nullptr && comm->size() == size, "a mesh of {} ranks without its communicator", size);
  all_reduce(*comm, values.mutable_raw(), static_cast<std::size_t>(values.count()), values.type(), ReduceOp::kSum,
             ops.stream());
}

namespace {

[[noreturn]] void refuse_shape(const ModelFiles& files, const std::string& name, const Shape& has,
                               const Shape& wanted) {
  throw Error(ErrorCode::kInvalid,
              fmt::format("{}: '{}' is {} where config.json makes it {}", files.folder().native(), name, to_string(has),
                          to_string(wanted)),
              "config.json and the weights do not belong together");
}

}  // namespace

std::unique_ptr<PackedMatrix> PartLoader::matrix(const std::string& module, MatrixShape whole, const Slice& slice) {
  if (const Matrix stored = files_.load_matrix(module); stored.rows != whole.rows || stored.columns != whole.columns) {
    refuse_shape(files_, module, {stored.rows, stored.columns}, {whole.rows, whole.columns});
  }
  const Matrix view = files_.load_matrix(module, slice);
  if (ops_ == nullptr) {
    bytes_ += Bytes{static_cast<std::int64_t>(view.bytes())};
    return nullptr;
  }
  std::unique_ptr<PackedMatrix> packed = ops_->pack(view);
  files_.drop(view);
  bytes_ += Bytes{static_cast<std::int64_t>(packed->bytes())};
  return packed;
}

Tensor PartLoader::vector(const std::string& name, std::int64_t elements, const Slice& slice) {
  if (const Shape& shape = files_.entry(name).shape; shape != Shape{elements}) {
    refuse_shape(files_, name, shape, {elements});
  }
  Tensor loaded = files_.load_tensor(name, slice);
  bytes_ += Bytes{static_cast<std::int64_t>(loaded.bytes())};
  return loaded;
}

void ColumnLinear::load(PartLoader& loader, const std::string& module, MatrixShape whole, Range rows, Bias bias) {
  weight_ = loader.matrix(module, whole, Slice::rows(rows));
  if (bias == Bias::kGiven) bias_ = loader.vector(module + ".bias", whole.rows, Slice::rows(rows));
}

Tensor ColumnLinear::operator()(Backend& ops, const Tensor& x) const {
  Tensor y = ops.allocate({x.extent(0), weight_->rows()}, DType::kF32);
  ops.linear(*weight_, x, y, {.bias = bias_.count() > 0 ? &bias_ : nullptr});
  return y;
}

void RowLinear::load(PartLoader& loader, const std::string& module, MatrixShape whole, Range columns, Bias bias) {
  weight_ = loader.matrix(module, whole, Slice::columns(columns));
  if (bias == Bias::kGiven && loader.mesh().rank == 0) bias_ = loader.vector(module + ".bias", whole.rows);
}

Tensor RowLinear::operator()(Backend& ops, const Mesh& mesh, const Tensor& x) const {
  Tensor y = ops.allocate({x.extent(0), weight_->rows()}, DType::kF32);
  ops.linear(*weight_, x, y, {.bias = bias_.count() > 0 ? &bias_ : nullptr});
  mesh.sum(ops, y);
  return y;
}

void VocabularyPart::load(PartLoader& loader, const std::string& module, MatrixShape whole) {
  const std::int64_t step = loader.files().load_matrix(module).row_step();
  range_ = near_equal_part(whole.rows, step, loader.mesh().rank, loader.mesh().size);
  table_ = loader.matrix(module, whole, Slice::rows(range_));
}

Tensor VocabularyPart::embed(Backend& ops, const Mesh& mesh, std::span<const std::int32_t> ids) const {
  Tensor x = ops.allocate({std::ssize(ids), table_->columns()}, DType::kF32);
  ops.embed(*table_, ids, x, {.first_id = static_cast<std::int32_t>(range_.begin)});
  mesh.sum(ops, x);
  return x;
}

Tensor VocabularyPart::logits(Backend& ops, const Tensor& x) const {
  Tensor y = ops.allocate({x.extent(0), table_->rows()}, DType::kF32);
  ops.linear(*table_, x, y);
  return y;
}

Range near_equal_part(std::int64_t extent, std::int64_t step, int rank, int size) {
  const std::int64_t steps = ceil_divide(extent, step);
  const auto cut = [&](std::int64_t index) { return std::min(extent, steps * index / size * step); };
  return {cut(rank), cut(rank + 1)};
}

}  // namespace yoke
