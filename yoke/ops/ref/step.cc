// What a step is made of, taken once; and the rows that go to the head.
#include <cmath>
#include <cstring>

#include "yoke/ops/ref/backend.h"

namespace yoke::ops::ref {

void RefBackend::begin_step(const StepBatch& batch, const PageRoom& room, const Rope& rope) {
  check_step(batch, room);
  step_.ids.assign(batch.ids.begin(), batch.ids.end());
  step_.pages.assign(batch.pages.begin(), batch.pages.end());
  step_.logit_rows.assign(batch.logit_rows.begin(), batch.logit_rows.end());
  step_.sequences.assign(batch.sequences.begin(), batch.sequences.end());
  step_.page_tokens = room.page_tokens;
  step_.queries.clear();
  for (const StepSequence& sequence : step_.sequences) {
    for (std::int64_t i = 0; i < sequence.fresh; ++i) step_.queries.push_back({&sequence, sequence.context + i});
  }
  step_.half = std::ssize(rope.inverse_frequencies);
  step_.cosines.resize(static_cast<std::size_t>(batch.tokens() * step_.half));
  step_.sines.resize(step_.cosines.size());
  pool_.parallel_for(batch.tokens(), 16, [&](tensor::Range rows) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      for (std::int64_t i = 0; i < step_.half; ++i) {
        const RopeAngle angle = rope_angle(rope, step_.queries[static_cast<std::size_t>(t)].position, i);
        step_.cosines[static_cast<std::size_t>(t * step_.half + i)] = angle.cosine;
        step_.sines[static_cast<std::size_t>(t * step_.half + i)] = angle.sine;
      }
    }
  });
}

void RefBackend::pick_rows(const Slab& x, const Slab& y) {
  const Sight sight(*this);
  expect(y, {std::ssize(step_.logit_rows), x.extent(1)});
  const std::int64_t width = x.extent(1);
  for (std::size_t i = 0; i < step_.logit_rows.size(); ++i) {
    std::memcpy(floats(y) + static_cast<std::int64_t>(i) * width, floats(x) + step_.logit_rows[i] * width,
                static_cast<std::size_t>(width) * sizeof(float));
  }
}

}  // namespace yoke::ops::ref
