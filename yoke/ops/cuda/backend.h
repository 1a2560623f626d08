// The backend of NVIDIA GPUs: weights, activations and caches in a device's memory, everything enqueued on one stream.
// Kernels are in the program (kernels.h) and need only the driver.
//
// Fast arithmetic: activations are rounded to bf16 where they meet weights; weights are exact (f16 and f32 as sums of
// bf16 numbers), sums are in f32, and so is all else. Exact arithmetic is f32 throughout. In both a row's bits do not
// depend on its batch, on how its prompt was cut into chunks, or on the GPU's number of multiprocessors (linear.cu and
// attention.cu say why).
//
// Tokens are chosen by the processor: select() waits for the logits of its rows, and hands them to a backend there.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "yoke/cuda/kernels.h"
#include "yoke/ops/backend.h"
#include "yoke/ops/cuda/kernels.h"
#include "yoke/ops/cuda/weights.h"

namespace yoke::ops::cuda {

// Whether there is a driver with a device that this program has kernels for; else why not.
Result<void> cuda_usable();

class CudaBackend final : public Backend {
 public:
  struct Options {
    int device = 0;  // as CUDA counts them, modulo how many there are
    bool is_exact = false;
    std::unique_ptr<Backend> host;  // that chooses tokens
  };
  explicit CudaBackend(Options options);
  ~CudaBackend() override;

  std::string_view name() const override { return "cuda"; }
  const yoke::cuda::CudaDevice& device() const { return device_; }

  tensor::Stream stream() const override { return stream_.stream(); }
  tensor::Event record() override;
  bool passed(tensor::Event event) override;
  std::unique_ptr<DeviceTimer> make_timer() override;

  std::optional<Bytes> memory_available() const override;
  std::unique_ptr<SlabMemory> allocate(const tensor::Shape& shape, tensor::DType type) override;
  void upload(std::span<const std::byte> from, const Slab& to) override;
  void download(const Slab& from, std::span<std::byte> to) override;

  std::size_t packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse use) const override;
  std::unique_ptr<PackedStack> pack(std::span<const tensor::Matrix> stack, MatrixUse use) override;

  void begin_step(const StepBatch& batch, const PageRoom& room, const Rope& rope) override;
  void embed(const PackedStack& table, std::int32_t first_id, const Slab& x) override;
  void norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) override;
  void add(const Slab& x, const Slab& residual) override;
  void linear(const PackedStack& weight, const Slab& x, const Slab& y, const LinearOptions& options) override;
  void place_heads(const Slab& qkv, const HeadsOptions& options, const CacheLayer& cache, const Slab& q) override;
  void attend(const Slab& q, const CacheLayer& cache, const Slab& y, const AttentionOptions& options) override;
  void pick_rows(const Slab& x, const Slab& y) override;

  void route(const Slab& scores, const RouteOptions& options, const Slab& ids, const Slab& weights) override;
  void experts(const PackedStack& gate_up, const PackedStack& down, const Slab& x, const Slab& ids, const Slab& weights,
               const Slab& y) override;

  void open_slot(std::int32_t slot, const SlotOptions& options) override { host_->open_slot(slot, options); }
  void count_token(std::int32_t slot, std::int32_t id) override { host_->count_token(slot, id); }
  void close_slot(std::int32_t slot) override { host_->close_slot(slot); }
  void select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows, const Slab& blocks) override;

 private:
  // Memory that grows to what is needed and stays.
  class Room {
   public:
    explicit Room(CudaBackend& ops) : ops_(ops) {}
    // Waits for the device where it must grow. `is_cleared`: what is new is zero.
    void* need(std::size_t bytes, bool is_cleared = false);

   private:
    CudaBackend& ops_;
    std::optional<yoke::cuda::CudaMemory> memory_;
  };

  const Kernels& kernels();
  void wait();  // for everything enqueued
  void linear_piece(const PackedMatrix& piece, LinearCall call);
  bool multiply_prompt(const PackedMatrix& piece, const LinearCall& call);  // false where there is no kernel for it
  CacheInfo cache_info(const CacheLayer& cache) const;

  yoke::cuda::CudaDevice device_;
  yoke::cuda::CudaStream stream_;
  std::optional<Kernels> kernels_;  // loaded when they are first needed
  std::optional<Packer> packer_;
  std::mutex loading_;
  int multiprocessors_;
  bool is_exact_;
  std::unique_ptr<Backend> host_;
  std::deque<yoke::cuda::CudaEvent> events_;  // the oldest first, used in turns

  Room step_room_{*this}, angles_room_{*this}, partials_{*this}, counters_{*this}, both_{*this}, hidden_{*this},
      rounded_{*this};
  std::optional<yoke::cuda::CudaHostMemory> pinned_, logits_;
  std::optional<tensor::Event> step_sent_;  // the step's description has left pinned_
  StepInfo step_;
  std::int64_t rows_ = 0, half_ = 0, longest_ = 0;  // of the step: rows, D / 2, tokens of the longest sequence
  std::int64_t logit_rows_ = 0;
  std::vector<std::int32_t> words_;
  std::vector<std::int32_t> blocks_;
  std::vector<SelectRow> select_rows_;
};

}  // namespace yoke::ops::cuda
