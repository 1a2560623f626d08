// The reference backend: every operation as its formula reads, in f32, on a few threads. Slow and obvious; other
// backends are measured against it. cpu/ derives from it and replaces what takes time.
#pragma once
#include <limits>
#include <set>
#include <unordered_map>

#include "yoke/ops/backend.h"
#include "yoke/ops/thread_pool.h"

namespace yoke::ops::ref {

// Keys and values, and the tokens that look at them.
struct Query {
  const StepSequence* sequence = nullptr;
  std::int64_t position = 0;
};

// What a slot keeps of a sequence for its penalties and masks.
struct Slot {
  struct Count {
    bool in_prompt = false;
    int in_answer = 0;
  };
  float repetition_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::vector<TokenBias> bias;
  std::vector<std::uint32_t> allowed;
  bool has_mask = false;
  bool penalizes = false;
  std::unordered_map<std::int32_t, Count> counts;  // empty where nothing is penalized

  bool changes() const { return penalizes || !bias.empty() || has_mask; }
};

struct Candidate {
  std::int32_t id = 0;
  float logit = 0;
  float raw = 0;
};
// One row of logits: as the model gave them, and with penalties, bias and mask. What is below `least` (`least_raw`) is
// not among the candidates that are wanted; by default everything may be.
struct RowLogits {
  std::span<const float> raw, used;
  std::int32_t first_id = 0;
  float least = -std::numeric_limits<float>::infinity();
  float least_raw = -std::numeric_limits<float>::infinity();
};
// What one piece of a row has to say.
struct SelectPart {
  std::vector<Candidate> best, likeliest;
  double max = 0, sum = 0, raw_max = 0, raw_sum = 0;
  bool numbers = true;
};

class RefBackend : public Backend {  // tests derive backends that fail from it
 public:
  struct Options {
    int threads = 1;
    SpinPolicy::CoreSharing core_sharing = SpinPolicy::CoreSharing::kNone;
    // For tests: memory can be read and written during operations only, as if it lay on a device.
    bool dark = false;
  };
  explicit RefBackend(const Options& options) : pool_(options.threads, options.core_sharing), dark_(options.dark) {}

  std::string_view name() const override { return "ref"; }
  tensor::Stream stream() const override { return tensor::Stream::cpu(); }
  tensor::Event record() override { return {}; }
  bool passed(tensor::Event) override { return true; }  // every call has done its work when it returns

  std::optional<Bytes> memory_available() const override { return std::nullopt; }
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

  void open_slot(std::int32_t slot, const SlotOptions& options) override;
  void count_token(std::int32_t slot, std::int32_t id) override;
  void close_slot(std::int32_t slot) override;
  void select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows, const Slab& blocks) override;

  // While one lives, this backend's memory can be reached.
  class Sight {
   public:
    explicit Sight(RefBackend& ops) : ops_(ops) { ops_.look(1); }
    ~Sight() { ops_.look(-1); }
    Sight(const Sight&) = delete;

   private:
    RefBackend& ops_;
  };

 protected:
  // What a step is made of, copied from the batch so that it lasts as long as the step. Vectors keep their room.
  struct Step {
    std::vector<std::int32_t> ids, pages, logit_rows;
    std::vector<StepSequence> sequences;
    std::vector<Query> queries;         // of each row
    std::vector<float> cosines, sines;  // [T, D / 2]
    std::int64_t half = 0;              // D / 2
    std::int64_t page_tokens = 1;
  };
  // Parts of select(), for backends that are faster at them. The first may raise `least` and `least_raw`; a piece that
  // has nothing from there on has neither candidates nor a maximum.
  virtual void bound_row(const SelectRow&, RowLogits&) const {}
  virtual void inspect_piece(const RowLogits& row, const SelectRow& select, tensor::Range range,
                             SelectPart& part) const;
  // The sum of exp(logit * scale - max).
  virtual double mass_of_piece(std::span<const float> logits, double scale, double max) const;
  static void inspect(const RowLogits& row, const SelectRow& select, std::size_t at, SelectPart& part);
  static void clear(SelectPart& part);

  std::byte* place(const Slab& pages, const StepSequence& sequence, std::int64_t token, std::int64_t head) const;

  ThreadPool pool_;
  Step step_;

 private:
  friend class RefMemory;
  void look(int change);
  void attend_one(const float* q, const Query& query, std::int64_t kv_head, const CacheLayer& cache,
                  const AttentionOptions& options, std::span<float> y) const;
  void turn(std::int64_t row, float* head) const;

  bool dark_;
  int looking_ = 0;
  std::set<SlabMemory*> blocks_;  // only where memory is dark
  std::unordered_map<std::int32_t, Slot> slots_;
  std::vector<float> hidden_;   // of experts: [T * choices, F]
  std::vector<float> changed_;  // logits with penalties, bias and masks, of the rows that have them
  std::vector<SelectPart> select_parts_;
  std::vector<RowLogits> select_rows_;
};

// The elements of a slab, inside of an operation.
inline float* floats(const Slab& slab) {
  YOKE_CHECK(slab.type == tensor::DType::kF32, "{}", to_string(slab.type));
  return reinterpret_cast<float*>(slab.address);
}
inline std::int32_t* words(const Slab& slab) {
  YOKE_CHECK(slab.type == tensor::DType::kI32, "{}", to_string(slab.type));
  return reinterpret_cast<std::int32_t*>(slab.address);
}
inline void expect(const Slab& slab, const tensor::Shape& shape) {
  YOKE_CHECK(slab.shape == shape, "{} where {} is needed", to_string(slab.shape), to_string(shape));
}

// Room of this thread for a row, kept from step to step. What it held is lost with the next call of the same index.
inline std::span<float> scratch(std::size_t index, std::int64_t count) {
  thread_local std::array<std::vector<float>, 4> rooms;
  std::vector<float>& room = rooms.at(index);
  if (std::ssize(room) < count) room.resize(static_cast<std::size_t>(count));
  return {room.data(), static_cast<std::size_t>(count)};
}

}  // namespace yoke::ops::ref
