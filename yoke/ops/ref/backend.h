// The reference backend: every operation as its formula reads, in f32, on a few threads. Slow and obvious; other
// backends are measured against it.
#pragma once
#include "yoke/ops/backend.h"
#include "yoke/ops/thread_pool.h"

namespace yoke {

class RefBackend final : public Backend {
 public:
  explicit RefBackend(int threads) : pool_(threads) {}

  std::string_view name() const override { return "ref"; }
  Stream stream() const override { return Stream::cpu(); }
  void wait() override {}  // every call has done its work when it returns
  Tensor allocate(const Shape& shape, DType type) override { return Tensor::empty(shape, type); }
  std::unique_ptr<PackedMatrix> pack(const Matrix& matrix) override;

  void linear(const PackedMatrix& weight, const Tensor& x, const Tensor& y, const LinearOptions& options) override;
  void embed(const PackedMatrix& table, std::span<const std::int32_t> ids, const Tensor& y,
             const EmbedOptions& options) override;
  void rms_norm(const Tensor& x, const Tensor& weight, float epsilon, const Tensor& y) override;
  void rotate(const Tensor& x, std::span<const std::int64_t> positions, const Rope& rope) override;
  void store_kv(const Tensor& k, const Tensor& v, const KvView& view) override;
  void attend(const Tensor& q, const KvView& view, const Tensor& y, const AttentionOptions& options) override;
  void swiglu(const Tensor& gate, const Tensor& up, const Tensor& y) override;
  void add(const Tensor& x, const Tensor& y) override;
  std::vector<Candidates> candidates(const Tensor& logits, const CandidateOptions& options) override;

 private:
  ThreadPool pool_;
};

}  // namespace yoke
