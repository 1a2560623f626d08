// Weights times activations, and rows of a table.
#include "yoke/base/check.h"
#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/dequantize.h"
#include "yoke/ops/ref/dot.h"

namespace yoke {
namespace {

class RefMatrix final : public PackedMatrix {
 public:
  explicit RefMatrix(Matrix matrix)
      : PackedMatrix(matrix.rows, matrix.columns, matrix.bytes()), matrix_(std::move(matrix)) {}
  const Matrix& matrix() const { return matrix_; }

 private:
  Matrix matrix_;
};

const Matrix& matrix_of(const PackedMatrix& packed) {
  const auto* const ours = dynamic_cast<const RefMatrix*>(&packed);
  YOKE_CHECK(ours != nullptr, "a matrix of {} x {} was packed by another backend", packed.rows(), packed.columns());
  return ours->matrix();
}

// Dense already, and all there is in its storage: a copy would only cost memory for a while.
bool is_packed_already(const Tensor& tensor) {
  return tensor.count() == 0 || (tensor.storage().kind() == Storage::Kind::kOwned && tensor.is_contiguous() &&
                                 tensor.bytes() == tensor.storage().size());
}

}  // namespace

std::unique_ptr<PackedMatrix> RefBackend::pack(const Matrix& matrix) {
  matrix.check();
  const bool keep = is_packed_already(matrix.values) && is_packed_already(matrix.scales) &&
                    is_packed_already(matrix.zeros) && is_packed_already(matrix.order);
  return std::make_unique<RefMatrix>(keep ? matrix : matrix.copied());
}

void RefBackend::linear(const PackedMatrix& weight, const Tensor& x, const Tensor& y, const LinearOptions& options) {
  const Matrix& matrix = matrix_of(weight);
  const std::int64_t tokens = x.extent(0);
  YOKE_CHECK(x.shape() == (Shape{tokens, matrix.columns}) && y.shape() == (Shape{tokens, matrix.rows}),
             "{} x {} times {} into {}", matrix.rows, matrix.columns, to_string(x.shape()), to_string(y.shape()));
  const std::vector<float> bias = options.bias != nullptr ? ref::to_floats(*options.bias)
                                                          : std::vector<float>(static_cast<std::size_t>(matrix.rows));
  YOKE_CHECK_EQ(std::ssize(bias), matrix.rows);
  pool_.parallel_for(matrix.rows, 16, [&](Range rows) {
    std::vector<float> row(static_cast<std::size_t>(matrix.columns));
    for (std::int64_t n = rows.begin; n < rows.end; ++n) {
      ref::dequantize_row(matrix, n, row);
      for (std::int64_t t = 0; t < tokens; ++t) {
        const float product = ref::dot(row.data(), x.row<float>(t), matrix.columns);
        y.mutable_row<float>(t)[n] = product + bias[static_cast<std::size_t>(n)];
      }
    }
  });
}

void RefBackend::embed(const PackedMatrix& table, std::span<const std::int32_t> ids, const Tensor& y,
                       const EmbedOptions& options) {
  const Matrix& matrix = matrix_of(table);
  YOKE_CHECK(y.shape() == (Shape{std::ssize(ids), matrix.columns}), "{} for {} ids of width {}", to_string(y.shape()),
             ids.size(), matrix.columns);
  for (std::int64_t t = 0; t < std::ssize(ids); ++t) {
    const std::span<float> row(y.mutable_row<float>(t), static_cast<std::size_t>(matrix.columns));
    const std::int64_t index = std::int64_t{ids[static_cast<std::size_t>(t)]} - options.first_id;
    if (index >= 0 && index < matrix.rows) {
      ref::dequantize_row(matrix, index, row);
    } else {
      std::fill(row.begin(), row.end(), 0.0F);
    }
  }
}

}  // namespace yoke
