// Arithmetic on a model's activations and weights: the one interface, whatever computes (ref/: slow, obvious, kept for
// ever as the oracle; cpu/ and cuda/). All of them pass the cases of cases_testing.h.
//
//   std::unique_ptr<Backend> ops = make_backend("ref");                             // backends.h
//   const auto qkv = ops->pack({q, k, v}, MatrixUse::kLinear);
//   ops->begin_step(batch, rope);                                                   // once a step
//   ops->norm(nullptr, residual, weight, 1e-5F, x);
//   ops->linear(*qkv, x, y);
//
// Memory is the backend's own (slab.h): only upload() and download() cross. A step allocates nothing: activations come
// from a StepArena, which gives the same addresses to the same calls. Work is enqueued on stream() in order and has
// ended when passed(record()) says so; on the processor it has when the call returns. Outputs never overlap inputs
// unless a comment says so. Activations are f32 [T, …]. Wrong shapes are bugs (YOKE_CHECK).
//
// Same bits whatever the company: a row of a result depends on its own inputs alone, not on the other rows of the
// batch, nor on how the prompt was cut into chunks, nor on the number of threads. So sums along K have one fixed order,
// and attention adds its keys in splits of kAttentionSplit tokens counted from the sequence's start.
//
// One thread at a time uses a backend; only pack() may be called by several at once.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/ops/device_timer.h"
#include "yoke/ops/rope.h"
#include "yoke/ops/select.h"
#include "yoke/ops/slab.h"
#include "yoke/ops/step.h"
#include "yoke/tensor/matrix.h"
#include "yoke/tensor/stream.h"

namespace yoke::ops {

inline constexpr std::int64_t kAttentionSplit = 256;

// A block of a backend's memory, committed when it is allocated.
class SlabMemory {
 public:
  virtual ~SlabMemory() = default;
  const Slab& slab() const { return slab_; }

 protected:
  explicit SlabMemory(const Slab& slab) : slab_(slab) {}
  Slab slab_;
};

// What a weight is packed for. A tied table is packed once, for both of its uses.
enum class MatrixUse { kLinear, kTable, kTableAndHead, kExpertGateUp, kExpertDown };

// Weights with the same inputs, in the layout of the backend that packed them: q, k and v side by side, or gate and up.
// Parts may have different formats; one weight alone is a stack of one. Of experts: gate 0, up 0, gate 1, up 1, …
class PackedStack {
 public:
  PackedStack(std::span<const tensor::Matrix> stack, std::size_t bytes);
  virtual ~PackedStack() = default;

  std::span<const tensor::Range> parts() const { return parts_; }  // rows of each part in the stack
  std::int64_t rows() const { return parts_.empty() ? 0 : parts_.back().end; }
  std::int64_t columns() const { return columns_; }
  std::size_t bytes() const { return bytes_; }  // that it holds in memory

 private:
  std::vector<tensor::Range> parts_;
  std::int64_t columns_ = 0;
  std::size_t bytes_ = 0;
};

enum class Activation {
  kNone,    // y [T, rows of the stack]
  kSwiglu,  // of two parts of equal size: y = silu(part 0) * part 1
};
struct LinearOptions {
  const Slab* bias = nullptr;  // [rows of the stack], f32
  Activation activation = Activation::kNone;
};
struct HeadsOptions {
  std::int64_t heads = 1, kv_heads = 1, width = 1;
  const Slab* q_norm = nullptr;  // [width]: heads are normed before they are turned
  const Slab* k_norm = nullptr;
  float epsilon = 0;
};
struct AttentionOptions {
  float scale = 1;          // of q·k, usually 1 / sqrt(D)
  std::int64_t window = 0;  // how many tokens back a query sees, itself included; 0: all
};
// Keys and values of one layer, [pages, Hkv, page tokens, D] each: all tokens of a head in a page lie together, as
// kernels read them. f32, bf16 or f16.
struct CacheLayer {
  Slab keys, values;
};
struct RouteOptions {
  std::int64_t count = 1;    // experts of a token
  bool renormalize = false;  // weights of the chosen sum to 1
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // ---- order
  virtual tensor::Stream stream() const = 0;
  virtual tensor::Event record() = 0;
  virtual bool passed(tensor::Event event) = 0;  // never waits
  // A clock of the device; null where the work is done when a call returns, and the processor's clock tells its time.
  virtual std::unique_ptr<DeviceTimer> make_timer() { return nullptr; }

  // ---- memory
  // What this backend's device has left; nothing where that is the system's memory.
  virtual std::optional<Bytes> memory_available() const = 0;
  // Committed: Error(kExhausted) here, not a killed process later. Uninitialized.
  virtual std::unique_ptr<SlabMemory> allocate(const tensor::Shape& shape, tensor::DType type) = 0;
  virtual void upload(std::span<const std::byte> from, const Slab& to) = 0;
  virtual void download(const Slab& from, std::span<std::byte> to) = 0;  // good once passed()

  // ---- weights
  // What pack() will hold, before anything is read.
  virtual std::size_t packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse use) const = 0;
  // Independent of the matrices' storage.
  virtual std::unique_ptr<PackedStack> pack(std::span<const tensor::Matrix> stack, MatrixUse use) = 0;

  // ---- a step
  // Checks all of it, once; takes what it needs of it.
  virtual void begin_step(const StepBatch& batch, const PageRoom& room, const Rope& rope) = 0;
  // x[t] = row ids[t] - first_id of the table; zeros for ids outside of it, to be summed over ranks.
  virtual void embed(const PackedStack& table, std::int32_t first_id, const Slab& x) = 0;
  // residual += x, where x is given; y[t, c] = residual[t, c] / sqrt(mean of residual[t]^2 + epsilon) * weight[c].
  virtual void norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) = 0;
  // residual += x.
  virtual void add(const Slab& x, const Slab& residual) = 0;
  // y[t, n] = sum over k of weight[n, k] * x[t, k], plus bias[n]; then the activation.
  virtual void linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options = {}) = 0;
  // qkv [T, (H + 2 Hkv) D]: norms heads of q and k where norms are given, turns them to their positions, puts k and v
  // into the pages, and q into q [T, H, D].
  virtual void place_heads(const Slab& qkv, const HeadsOptions& options, const CacheLayer& cache, const Slab& q) = 0;
  // q, y [T, H, D]: softmax(scale * q·k) v over the tokens up to and with each query's own, which place_heads has put
  // there. Query head h reads the keys of head h / (H / Hkv). y may be q.
  virtual void attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) = 0;
  // y = the step's logit rows of x.
  virtual void pick_rows(const Slab& x, const Slab& y) = 0;

  // ---- experts
  // scores [T, E]: softmax, then the best of each row into ids i32 [T, count] and weights f32 [T, count], best first;
  // of equal scores the lower expert.
  virtual void route(const Slab& scores, const RouteOptions& options, const Slab& ids, const Slab& weights) = 0;
  // y[t] = sum over the choices, best first, of weights[t, i] * down(silu(gate(x)) * up(x)) of expert ids[t, i].
  virtual void experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids,
                       const Slab& weights, const Slab& y) = 0;

  // ---- choosing tokens (select.h)
  virtual void open_slot(std::int32_t slot, const SlotOptions& options) = 0;
  virtual void count_token(std::int32_t slot, std::int32_t id) = 0;  // of the answer
  virtual void close_slot(std::int32_t slot) = 0;
  // For each row of `rows` a block of words in `blocks` i32 [rows, words]; logits [rows of the head, vocabulary part].
  virtual void select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows,
                      const Slab& blocks) = 0;
};

}  // namespace yoke::ops
