// The cases that every backend passes, and how near to the exact result it must come. Shapes include nothing, one,
// primes, and one below, at and above a tile; inputs are drawn from the seed that a case gives; all formats of weights
// occur. The tests compute the exact results in double precision (oracle.h), benchmarks verify what they time by the
// same cases.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/rng_testing.h"
#include "yoke/ops/backend.h"
#include "yoke/ops/backends.h"

namespace yoke::ops {

// How far a result may be from the exact one: the rounding of a sum of K terms of size `scale`, each rounded to the
// type's precision. Never loosened for a case.
double tolerance(tensor::DType type, std::int64_t K, double scale);

// A backend in one of its forms: each instruction set of this processor is one.
struct BackendVariant {
  std::string label;  // "cpu_avx2_exact"
  std::string name;
  BackendOptions options;

  std::unique_ptr<Backend> make(int threads) const {
    BackendOptions with_threads = options;
    with_threads.threads = threads;
    return make_backend(name, with_threads);
  }
};
std::vector<BackendVariant> exact_variants();  // those that compute in f32
std::vector<BackendVariant> all_variants();
inline std::string label_of(const testing::TestParamInfo<BackendVariant>& info) { return info.param.label; }

// How a matrix is stored.
struct MatrixCase {
  std::string name;
  tensor::MatrixFormat format = tensor::MatrixFormat::kPlain;
  tensor::DType type = tensor::DType::kF32;  // of plain values, or of scales
  std::int64_t scale_rows = 1;               // 0: one for all rows
  std::int64_t scale_columns = 0;            // 0: one for all columns
  enum class Zeros { kNone, kPacked, kPackedLessOne } zeros = Zeros::kNone;
  enum class Order { kConsecutive, kMixed } order = Order::kConsecutive;
  enum class Layout { kRowMajor, kTransposed } layout = Layout::kRowMajor;
  tensor::DType values = tensor::DType::kU8;  // of int8
};
std::vector<MatrixCase> matrix_cases();
std::int64_t column_step(const MatrixCase& storage);  // widths must be a multiple of it

tensor::Matrix random_matrix(const MatrixCase& storage, std::int64_t rows, std::int64_t columns, Random& random);
tensor::Tensor random_tensor(const tensor::Shape& shape, Random& random);  // f32 in [-1, 1)

// A tensor in a backend's memory, and back.
struct HeldSlab {
  std::unique_ptr<SlabMemory> memory;
  Slab slab;
  operator const Slab&() const { return slab; }  // NOLINT: tests pass it where an operation wants a slab
};
HeldSlab hold(Backend& ops, const tensor::Tensor& tensor);
HeldSlab room(Backend& ops, const tensor::Shape& shape, tensor::DType type = tensor::DType::kF32);
tensor::Tensor fetch(Backend& ops, const Slab& slab);

struct LinearSizes {
  std::int64_t T, N;
  std::int64_t K;  // to be rounded up to column_step()
};
std::vector<LinearSizes> linear_sizes();

struct RowSizes {  // of what works row by row
  std::int64_t T, C;
};
std::vector<RowSizes> row_sizes();

struct AttentionCase {
  struct Lengths {
    std::int64_t context, fresh;
  };
  std::string name;
  std::vector<Lengths> sequences;
  std::int64_t heads = 4, kv_heads = 2, width = 16, page_tokens = 16, window = 0;
  tensor::DType type = tensor::DType::kF32;
};
std::vector<AttentionCase> attention_cases();

// Pages with the tokens of a case's contexts in them, handed out in a mixed order, and the step that adds the fresh
// ones.
struct KvPages {
  tensor::Tensor keys, values;
  std::vector<std::vector<std::int32_t>> pages;  // of each sequence
  StepRows step;
  PageRoom room;
};
KvPages random_pages(const AttentionCase& attention, Random& random);

// One rope that turns nothing, so that what is placed is what was given.
Rope no_rope(std::int64_t width);

}  // namespace yoke::ops
