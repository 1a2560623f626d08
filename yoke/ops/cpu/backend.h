// The backend of the processor: kernels for its instruction set (kernels.h) where time is spent, the reference's
// formulas where it is not.
//
// Fast arithmetic: int4 weights are multiplied with activations rounded to int8 (a scale for each block of at most 128
// columns), bf16 weights with activations rounded to bf16 where the processor multiplies such; all else in f32. Exact
// arithmetic is f32 throughout. docs/performance.md says how far the two are apart.
#pragma once
#include "yoke/ops/cpu/input.h"
#include "yoke/ops/ref/backend.h"

namespace yoke::ops::cpu {

class CpuBackend final : public ref::RefBackend {
 public:
  struct Options {
    int threads = 1;
    SpinPolicy::CoreSharing core_sharing = SpinPolicy::CoreSharing::kNone;
    bool is_exact = false;
    const Kernels* kernels = nullptr;  // never null
  };
  explicit CpuBackend(const Options& options)
      : RefBackend({.threads = options.threads, .core_sharing = options.core_sharing}),
        kernels_(*options.kernels),
        is_exact_(options.is_exact) {}

  std::string_view name() const override { return "cpu"; }
  const Kernels& kernels() const { return kernels_; }

  std::size_t packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse use) const override;
  std::unique_ptr<PackedStack> pack(std::span<const tensor::Matrix> stack, MatrixUse use) override;

  void norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) override;
  void embed(const PackedStack& table, std::int32_t first_id, const Slab& x) override;
  void linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options) override;
  void attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) override;
  void experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids, const Slab& weights,
               const Slab& y) override;

 protected:
  void bound_row(const SelectRow& select, ref::RowLogits& row) const override;
  void inspect_piece(const ref::RowLogits& row, const SelectRow& select, tensor::Range range,
                     ref::SelectPart& part) const override;
  double mass_of_piece(std::span<const float> logits, double scale, double max) const override;

 private:
  // Some rows of one sequence and one kv head: what shares its keys.
  struct AttentionUnit {
    const StepSequence* sequence = nullptr;
    tensor::Range rows;  // of the step
    std::int64_t kv_head = 0;
  };
  struct AttentionCall {
    const float* q = nullptr;
    float* y = nullptr;
    const CacheLayer* cache = nullptr;
    AttentionOptions options;
    std::int64_t heads = 1, group = 1, width = 1, padded = 1;
    std::int64_t partial = 0;  // floats of one head in one split
  };
  void cut_attention(const AttentionCall& call);
  std::int64_t splits_of(const AttentionUnit& unit) const;
  void locate(const AttentionCall& call, const AttentionUnit& unit, const Slab& cache, tensor::Range tokens,
              const std::byte** to) const;
  // `following`: what this thread attends to next; null: unknown.
  void attend_split(const AttentionCall& call, const AttentionUnit& unit, std::int64_t split,
                    const AttentionUnit* following, float* partials) const;
  void join_splits(const AttentionCall& call, const AttentionUnit& unit, const float* partials) const;

  // silu(gate) * up of some panels for chosen rows, into rows `targets` of y.
  void swiglu_panels(const Panels& gate, const Panels& up, const PreparedInput& x_gate, const PreparedInput& x_up,
                     tensor::Range panels, std::span<const std::int32_t> rows, const float* bias, float* y,
                     const std::int32_t* targets) const;

  const Kernels& kernels_;
  bool is_exact_;
  std::vector<const Panels*> stack_;  // of the linear or the experts at work
  PreparedInputs inputs_;
  std::vector<std::int32_t> all_rows_;
  std::vector<AttentionUnit> units_;
  std::vector<float> partials_;
  // Of experts: which pairs (token, choice) each has, and what becomes of them.
  std::vector<std::size_t> used_experts_;
  std::vector<std::vector<std::int32_t>> pairs_of_, tokens_of_;
  std::vector<float> gated_, products_;
};

}  // namespace yoke::ops::cpu
