// Arithmetic on tensors: the one interface, whatever computes (ref/: slow, obvious, kept for ever as the oracle; later
// cpu/ and cuda/, with the same file names). All of them pass the cases of cases.h.
//
//   std::unique_ptr<Backend> ops = make_backend("ref");                  // backends.h
//   std::unique_ptr<PackedMatrix> w = ops->pack(files.load_matrix("lm_head"));
//   ops->linear(*w, x, y);
//
// Work is enqueued on stream() in order; wait() before reading results. On the processor it is done when the call
// returns. Outputs are written, never allocated: y is given, and may be x where the comment says so. Activations are
// f32 [T, …] with dense rows (the last axis has stride 1); norm weights and biases f32, bf16 or f16. Wrong shapes are
// bugs (YOKE_CHECK).
//
// Same bits whatever the company: a row of a result depends on its own inputs alone, not on the other rows of the
// batch, nor on how the prompt was cut into chunks, nor on the number of threads. So sums along K have one fixed order,
// and attention adds its keys in splits of kAttentionSplit tokens counted from the sequence's start.
//
// One thread at a time uses a backend.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "yoke/ops/kv_view.h"
#include "yoke/ops/rope.h"
#include "yoke/tensor/matrix.h"
#include "yoke/tensor/stream.h"
#include "yoke/tensor/tensor.h"

namespace yoke {

inline constexpr std::int64_t kAttentionSplit = 256;

// A weight in the layout of the backend that packed it; no other backend can read it.
class PackedMatrix {
 public:
  PackedMatrix(std::int64_t rows, std::int64_t columns, std::size_t bytes)
      : rows_(rows), columns_(columns), bytes_(bytes) {}
  virtual ~PackedMatrix() = default;

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::size_t bytes() const { return bytes_; }  // that it holds in memory

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::size_t bytes_;
};

struct LinearOptions {
  const Tensor* bias = nullptr;  // [N]
};
struct EmbedOptions {
  std::int32_t first_id = 0;  // of the table's first row; ids outside the table give zeros, to be summed over ranks
};
struct AttentionOptions {
  float scale = 1;          // of q·k, usually 1 / sqrt(D)
  std::int64_t window = 0;  // how many tokens back a query sees, itself included; 0: all
};
struct CandidateOptions {
  std::int64_t count = 1;     // at most; a row has no more than V
  std::int32_t first_id = 0;  // of the row's first logit
};

// The best of one row of logits, and what it takes to know their probabilities.
struct Candidates {
  std::vector<std::int32_t> ids;  // best first; of equal logits the lower id; NaN counts as the lowest
  std::vector<float> logits;
  float max = 0;
  double sum = 0;  // of exp(logit - max) over the whole row
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Stream stream() const = 0;
  virtual void wait() = 0;  // until all that was enqueued is done
  // Where this backend computes, and where the processor reaches it too; uninitialized.
  virtual Tensor allocate(const Shape& shape, DType type) = 0;
  virtual std::unique_ptr<PackedMatrix> pack(const Matrix& matrix) = 0;  // independent of the matrix's storage

  // y[t, n] = sum over k of weight[n, k] * x[t, k], plus bias[n].
  virtual void linear(const PackedMatrix& weight, const Tensor& x, const Tensor& y,
                      const LinearOptions& options = {}) = 0;
  // y[t] = row ids[t] - first_id of the table.
  virtual void embed(const PackedMatrix& table, std::span<const std::int32_t> ids, const Tensor& y,
                     const EmbedOptions& options = {}) = 0;
  // y[t, c] = x[t, c] / sqrt(mean of x[t]^2 + epsilon) * weight[c]; y may be x. Heads are rows of [T * H, D].
  virtual void rms_norm(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& y) = 0;
  // Turns x [T, H, D] in place, row t to positions[t].
  virtual void rotate(const Tensor& x, std::span<const std::int64_t> positions, const Rope& rope) = 0;
  // Puts the fresh tokens' k and v [T, Hkv, D] into the pages.
  virtual void store_kv(const Tensor& k, const Tensor& v, const KvView& view) = 0;
  // y, q [T, H, D]: softmax(scale * q·k) v over the tokens up to and with each query's own, which store_kv has put
  // there. Query head h reads the keys of head h / (H / Hkv). y may be q.
  virtual void attend(const Tensor& q, const KvView& view, const Tensor& y, const AttentionOptions& options) = 0;
  // y = silu(gate) * up; y may be either.
  virtual void swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) = 0;
  // y += x.
  virtual void add(const Tensor& x, const Tensor& y) = 0;
  // Of each row of logits [T, V]; waits for the stream.
  virtual std::vector<Candidates> candidates(const Tensor& logits, const CandidateOptions& options) = 0;
};

}  // namespace yoke
