// Weights times activations, and rows of a table.
#include "yoke/ops/ref/backend.h"
#include "yoke/ops/ref/dequantize.h"
#include "yoke/ops/ref/rows.h"
#include "yoke/ops/ref/stack.h"

namespace yoke::ops::ref {
namespace {

// Dense already, and all there is in its storage: a copy would only cost memory for a while.
bool is_packed_already(const tensor::Tensor& tensor) {
  return tensor.count() == 0 || (tensor.storage().kind() == tensor::Storage::Kind::kOwned && tensor.is_contiguous() &&
                                 tensor.bytes() == tensor.storage().size());
}

tensor::Matrix packed(const tensor::Matrix& matrix) {
  matrix.check();
  const bool keep = is_packed_already(matrix.values) && is_packed_already(matrix.scales) &&
                    is_packed_already(matrix.zeros) && is_packed_already(matrix.order);
  return keep ? matrix : matrix.copied();
}

}  // namespace

std::size_t RefBackend::packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse) const {
  std::size_t bytes = 0;
  for (const tensor::MatrixInfo& info : stack) bytes += info.stored_bytes;
  return bytes;
}

std::unique_ptr<PackedStack> RefBackend::pack(std::span<const tensor::Matrix> stack, MatrixUse) {
  std::vector<tensor::Matrix> parts;
  std::size_t bytes = 0;
  for (const tensor::Matrix& matrix : stack) {
    parts.push_back(packed(matrix));
    bytes += parts.back().bytes();
  }
  return std::make_unique<RefStack>(std::move(parts), bytes);
}

void RefBackend::linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options) {
  const Sight sight(*this);
  const std::vector<tensor::Matrix>& matrices = matrices_of(weight);
  const std::int64_t tokens = x.extent(0);
  const std::int64_t K = weight.columns();
  const bool gated = options.activation == Activation::kSwiglu;
  YOKE_CHECK(!gated || (matrices.size() == 2 && matrices[0].rows == matrices[1].rows), "{} parts are no gate and up",
             matrices.size());
  const std::int64_t N = gated ? matrices[0].rows : weight.rows();
  expect(x, {tokens, K});
  expect(y, {tokens, N});
  if (options.bias != nullptr) expect(*options.bias, {weight.rows()});
  if (tokens == 0) return;  // nothing would come of all those weights
  const float* const bias = options.bias != nullptr ? floats(*options.bias) : nullptr;
  const auto at = [&](std::int64_t row) { return bias != nullptr ? bias[row] : 0.0F; };
  const float* const from = floats(x);
  float* const to = floats(y);
  if (gated) {
    pool_.parallel_for(N, 16, [&](tensor::Range rows) {
      const std::span<float> gate = scratch(0, K);
      const std::span<float> up = scratch(1, K);
      for (std::int64_t n = rows.begin; n < rows.end; ++n) {
        dequantize_row(matrices[0], n, gate);
        dequantize_row(matrices[1], n, up);
        for (std::int64_t t = 0; t < tokens; ++t) {
          const float g = dot(gate.data(), from + t * K, K) + at(n);
          const float u = dot(up.data(), from + t * K, K) + at(N + n);
          to[t * N + n] = silu(g) * u;
        }
      }
    });
    return;
  }
  for (std::size_t part = 0; part < matrices.size(); ++part) {
    const tensor::Matrix& matrix = matrices[part];
    const std::int64_t first = weight.parts()[part].begin;
    pool_.parallel_for(matrix.rows, 16, [&](tensor::Range rows) {
      const std::span<float> row = scratch(0, K);
      for (std::int64_t n = rows.begin; n < rows.end; ++n) {
        dequantize_row(matrix, n, row);
        for (std::int64_t t = 0; t < tokens; ++t) {
          to[t * N + first + n] = dot(row.data(), from + t * K, K) + at(first + n);
        }
      }
    });
  }
}

void RefBackend::embed(const PackedStack& table, std::int32_t first_id, const Slab& x) {
  const Sight sight(*this);
  const std::vector<tensor::Matrix>& matrices = matrices_of(table);
  YOKE_CHECK_EQ(matrices.size(), 1U);
  const std::int64_t width = table.columns();
  expect(x, {std::ssize(step_.ids), width});
  pool_.parallel_for(std::ssize(step_.ids), 16, [&](tensor::Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      const std::span<float> row(floats(x) + t * width, static_cast<std::size_t>(width));
      const std::int64_t index = std::int64_t{step_.ids[static_cast<std::size_t>(t)]} - first_id;
      if (index >= 0 && index < matrices[0].rows) {
        dequantize_row(matrices[0], index, row);
      } else {
        std::fill(row.begin(), row.end(), 0.0F);
      }
    }
  });
}

}  // namespace yoke::ops::ref
