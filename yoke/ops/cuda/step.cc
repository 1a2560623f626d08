// What a step is made of, sent to the device in one piece; and what looks at one row at a time.
#include <algorithm>
#include <cstring>

#include "yoke/ops/cuda/backend.h"
#include "yoke/ops/cuda/slabs.h"

namespace yoke::ops::cuda {
namespace {

constexpr unsigned kRowThreads = 256;
constexpr unsigned kNormThreads = 1024;

}  // namespace

void CudaBackend::begin_step(const StepBatch& batch, const PageRoom& room, const Rope& rope) {
  check_step(batch, room);
  rows_ = batch.tokens();
  half_ = std::ssize(rope.inverse_frequencies);
  logit_rows_ = std::ssize(batch.logit_rows);
  longest_ = 0;
  words_.clear();
  const auto put = [&](const auto& list) {
    const std::size_t at = words_.size();
    words_.insert(words_.end(), list.begin(), list.end());
    return at;
  };
  const std::size_t ids = put(batch.ids);
  const std::size_t positions = put(batch.positions);
  const std::size_t pages = put(batch.pages);
  const std::size_t logit_rows = put(batch.logit_rows);
  const std::size_t sequence_of = words_.size();
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    words_.insert(words_.end(), static_cast<std::size_t>(batch.sequences[i].fresh), static_cast<std::int32_t>(i));
  }
  const std::size_t sequences = words_.size();
  for (const StepSequence& one : batch.sequences) {
    for (const std::int32_t word : {one.first_row, one.fresh, one.context, one.first_page}) words_.push_back(word);
    longest_ = std::max<std::int64_t>(longest_, std::int64_t{one.context} + one.fresh);
  }
  const std::size_t frequencies = words_.size();
  words_.resize(frequencies + rope.inverse_frequencies.size());
  std::memcpy(words_.data() + frequencies, rope.inverse_frequencies.data(),
              rope.inverse_frequencies.size() * sizeof(float));
  const std::size_t bytes = words_.size() * sizeof words_[0];
  auto* const base = static_cast<int*>(step_room_.need(bytes));
  // Through memory that is not written to again before the step before has ended: it has, as its tokens are known.
  if (!pinned_ || pinned_->size() < bytes) {
    wait();
    pinned_.emplace(device_, std::max<std::size_t>(2 * bytes, std::size_t{64} << 10));
  } else if (!step_sent_ || !passed(*step_sent_)) {
    wait();
  }
  std::memcpy(pinned_->data(), words_.data(), bytes);
  stream_.copy(base, pinned_->data(), bytes);
  step_sent_ = record();
  step_ = {
      .ids = base + ids,
      .sequence_of = base + sequence_of,
      .positions = base + positions,
      .sequences = reinterpret_cast<const SequenceInfo*>(base + sequences),
      .pages = base + pages,
      .logit_rows = base + logit_rows,
      .angles = static_cast<float*>(angles_room_.need(static_cast<std::size_t>(rows_ * half_) * 2 * sizeof(float))),
      .page_tokens = static_cast<int>(room.page_tokens)};
  kernels().angles.launch(stream(), {.blocks = {count_of(rows_), 1, 1}, .threads = 64}, step_.positions,
                          reinterpret_cast<const float*>(base + frequencies), static_cast<int>(half_), step_.angles);
}

void CudaBackend::norm(const Slab* x, const Slab& residual, const Slab& weight, float epsilon, const Slab& y) {
  const std::int64_t width = residual.extent(1);
  expect(y, residual.shape);
  expect(weight, {width});
  if (x != nullptr) expect(*x, residual.shape);
  const unsigned threads = width >= 4096 ? kNormThreads : kRowThreads;
  kernels().norm.launch(stream(), {.blocks = {count_of(residual.extent(0)), 1, 1}, .threads = threads},
                        static_cast<const float*>(x != nullptr ? floats(*x) : nullptr), floats(residual),
                        static_cast<const float*>(floats(weight)), epsilon, static_cast<int>(width), floats(y));
}

void CudaBackend::add(const Slab& x, const Slab& residual) {
  expect(x, residual.shape);
  const auto count = static_cast<long long>(x.count());
  kernels().add.launch(stream(),
                       {.blocks = {count_of((count + kRowThreads - 1) / kRowThreads), 1, 1}, .threads = kRowThreads},
                       static_cast<const float*>(floats(x)), floats(residual), count);
}

void CudaBackend::pick_rows(const Slab& x, const Slab& y) {
  expect(y, {logit_rows_, x.extent(1)});
  kernels().pick_rows.launch(stream(), {.blocks = {count_of(logit_rows_), 1, 1}, .threads = kRowThreads},
                             static_cast<const float*>(floats(x)), step_.logit_rows, static_cast<int>(x.extent(1)),
                             floats(y));
}

void CudaBackend::route(const Slab& scores, const RouteOptions& options, const Slab& ids, const Slab& weights) {
  const std::int64_t tokens = scores.extent(0);
  const std::int64_t E = scores.extent(1);
  YOKE_CHECK(options.count >= 1 && options.count <= E, "{} of {} experts", options.count, E);
  expect(ids, {tokens, options.count});
  expect(weights, {tokens, options.count});
  kernels().route.launch(stream(), {.blocks = {count_of(tokens), 1, 1}, .threads = 32},
                         static_cast<const float*>(floats(scores)), static_cast<int>(E),
                         static_cast<int>(options.count), options.renormalize ? 1 : 0, ints(ids), floats(weights));
}

// The logits of the rows come to the processor, in memory that it and the device share; the blocks go back.
void CudaBackend::select(const Slab& logits, std::int32_t first_id, std::span<const SelectRow> rows,
                         const Slab& blocks) {
  const std::int64_t V = logits.extent(1);
  const auto count = std::ssize(rows);
  YOKE_CHECK(blocks.shape.rank() == 2 && blocks.extent(0) == count, "{} for {} rows", to_string(blocks.shape), count);
  if (count == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(count * V) * sizeof(float);
  if (!logits_ || logits_->size() < bytes) logits_.emplace(device_, bytes);
  select_rows_.assign(rows.begin(), rows.end());
  for (std::int64_t i = 0; i < count; ++i) {
    SelectRow& row = select_rows_[static_cast<std::size_t>(i)];
    YOKE_CHECK(row.logit_row >= 0 && row.logit_row < logits.extent(0), "row {} of {}", row.logit_row, logits.extent(0));
    stream_.copy(logits_->data() + static_cast<std::size_t>(i * V) * sizeof(float), floats(logits) + row.logit_row * V,
                 static_cast<std::size_t>(V) * sizeof(float));
    row.logit_row = static_cast<std::int32_t>(i);
  }
  wait();
  blocks_.resize(static_cast<std::size_t>(blocks.count()));
  const Slab on_host{reinterpret_cast<std::uintptr_t>(logits_->data()), {count, V}, tensor::DType::kF32};
  const Slab chosen{reinterpret_cast<std::uintptr_t>(blocks_.data()), blocks.shape, tensor::DType::kI32};
  host_->select(on_host, first_id, select_rows_, chosen);
  upload(std::as_bytes(std::span(blocks_)), blocks);
}

}  // namespace yoke::ops::cuda
