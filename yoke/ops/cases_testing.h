// The cases that every backend passes, and how near to the exact result it must come. Shapes include nothing, one,
// primes, and one below, at and above a tile; inputs are drawn from the seed that a case gives; all formats of weights
// occur. The tests compute the exact results in double precision (oracle.h), benchmarks verify what they time by the
// same cases.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/rng_testing.h"
#include "yoke/ops/backend.h"

namespace yoke {

// How far a result may be from the exact one: the rounding of a sum of K terms of size `scale`, each rounded to the
// type's precision. Never loosened for a case.
double tolerance(DType type, std::int64_t K, double scale);

// How a matrix is stored.
struct MatrixCase {
  std::string name;
  MatrixFormat format = MatrixFormat::kPlain;
  DType type = DType::kF32;        // of plain values, or of scales
  std::int64_t scale_rows = 1;     // 0: one for all rows
  std::int64_t scale_columns = 0;  // 0: one for all columns
  enum class Zeros { kNone, kPacked, kPackedLessOne } zeros = Zeros::kNone;
  enum class Order { kConsecutive, kMixed } order = Order::kConsecutive;
  enum class Layout { kRowMajor, kTransposed } layout = Layout::kRowMajor;
};
std::vector<MatrixCase> matrix_cases();
std::int64_t column_step(const MatrixCase& storage);  // widths must be a multiple of it

Matrix random_matrix(const MatrixCase& storage, std::int64_t rows, std::int64_t columns, Random& random);
// Values in [-1, 1), written into a tensor that the backend allocates.
Tensor random_tensor(Backend& ops, const Shape& shape, Random& random);

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
  DType type = DType::kF32;
};
std::vector<AttentionCase> attention_cases();

// Pages with the tokens of a case's contexts in them, handed out in a mixed order. The sequences look into the lists of
// pages, which therefore move, but are never copied.
struct KvPages {
  KvPages() = default;
  KvPages(KvPages&&) = default;

  Tensor keys, values;
  std::vector<std::vector<std::int32_t>> pages;
  std::vector<KvSequence> sequences;

  KvView view() const { return {keys, values, sequences}; }
};
KvPages random_pages(Backend& ops, const AttentionCase& attention, Random& random);

}  // namespace yoke
