// A backend that hands every operation on to another one and keeps how long it took, and how much it had to read and to
// compute: what an operation's share of the machine's limits is. For engines and for measurements of models; one thread
// owns it. Where operations are enqueued on a device, their times are those of the calls, unless time_on_device() is
// called.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "yoke/base/span_log.h"
#include "yoke/ops/backend.h"

namespace yoke::ops {

struct OperationTime {
  std::string name;  // "q, k, v", "attention", "head"
  std::int64_t calls = 0;
  double seconds = 0;
  double bytes = 0;       // of weights, keys and values that were read
  double operations = 0;  // multiplications and additions
};

// The same in three parts.
struct OperationShares {
  double weights = 0;  // seconds of products with weights
  double cache = 0;    // of attention
  double others = 0;
  double weight_bytes = 0;  // read
  double operations = 0;    // of products with weights
};

class TimedBackend final : public Backend {
 public:
  explicit TimedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  // From now on by the device's clock, if it has one. Times are taken when the step's work has passed.
  void time_on_device() { timer_ = inner_->make_timer(); }
  // Since the last call, in the order of a layer.
  std::vector<OperationTime> take_times();
  OperationShares take_shares();  // the same, without an allocation
  // Each operation from now on is also a span of this log, which outlives the next call; null: no longer.
  void keep_spans(SpanLog* spans) { spans_ = spans; }

  std::string_view name() const override { return inner_->name(); }
  tensor::Stream stream() const override { return inner_->stream(); }
  tensor::Event record() override { return inner_->record(); }
  bool passed(tensor::Event event) override { return inner_->passed(event); }
  std::optional<Bytes> memory_available() const override { return inner_->memory_available(); }
  std::unique_ptr<SlabMemory> allocate(const tensor::Shape& shape, tensor::DType type) override {
    return inner_->allocate(shape, type);
  }
  void upload(std::span<const std::byte> from, const Slab& to) override { inner_->upload(from, to); }
  void download(const Slab& from, std::span<std::byte> to) override { inner_->download(from, to); }
  std::size_t packed_bytes(std::span<const tensor::MatrixInfo> stack, MatrixUse use) const override {
    return inner_->packed_bytes(stack, use);
  }
  std::unique_ptr<PackedStack> pack(std::span<const tensor::Matrix> stack, MatrixUse use) override {
    return inner_->pack(stack, use);
  }
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
  void open_slot(std::int32_t slot, const SlotOptions& options) override { inner_->open_slot(slot, options); }
  void count_token(std::int32_t slot, std::int32_t id) override { inner_->count_token(slot, id); }
  void close_slot(std::int32_t slot) override { inner_->close_slot(slot); }
  void select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows, const Slab& blocks) override;

 private:
  enum class Name {
    kPrepare,
    kEmbed,
    kNorm,
    kQkv,
    kPlaceHeads,
    kAttention,
    kOut,
    kGateUp,
    kDown,
    kRoute,
    kExperts,
    kPick,
    kHead,
    kSelect,
    kCount
  };
  static const char* text(Name name);
  void add_device_times();
  template <class Call>
  void timed(Name name, double bytes, double operations, const Call& call);

  std::unique_ptr<Backend> inner_;
  SpanLog* spans_ = nullptr;
  std::array<OperationTime, static_cast<std::size_t>(Name::kCount)> times_{};
  struct OnDevice {
    Name name;
    std::size_t begin, end;  // marks
  };
  std::unique_ptr<DeviceTimer> timer_;
  std::vector<OnDevice> on_device_;
  Name before_ = Name::kPrepare;  // which linear it is shows by what came before
  double keys_read_ = 0;          // tokens of context of all sequences
  double scores_ = 0;             // pairs of a query and a key
};

}  // namespace yoke::ops
