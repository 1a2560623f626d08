#include "yoke/ops/cpu/input.h"

#include <algorithm>

namespace yoke::ops::cpu {
namespace {

template <class T>
void grow(std::vector<T>& room, std::int64_t count) {
  if (std::ssize(room) < count) room.resize(static_cast<std::size_t>(count));
}

// A row in the order of the weights' columns.
void place_row(const float* x, std::int64_t columns, std::span<const std::int32_t> source, std::int64_t places,
               float* to) {
  if (source.empty()) {
    std::copy(x, x + columns, to);
    std::fill(to + columns, to + places, 0.0F);
    return;
  }
  for (std::int64_t p = 0; p < places; ++p) {
    const std::int32_t column = source[static_cast<std::size_t>(p)];
    to[p] = column < 0 ? 0 : x[column];
  }
}

// Room of this thread for a row in order.
float* row_room(std::int64_t count) {
  thread_local std::vector<float> room;
  grow(room, count);
  return room.data();
}

}  // namespace

InputForm input_form(PanelKind kind, const Kernels& kernels, bool is_exact) {
  if (is_exact) return InputForm::kF32;
  if (kind == PanelKind::kInt4 || kind == PanelKind::kInt8) return InputForm::kInt8;
  if (kind == PanelKind::kBf16 && kernels.multiply_bf16 != nullptr) return InputForm::kBf16;
  return InputForm::kF32;
}

MultiplyPanel multiply_of(InputForm form, const Kernels& kernels) {
  return form == InputForm::kInt8   ? kernels.multiply_i8
         : form == InputForm::kBf16 ? kernels.multiply_bf16
                                    : kernels.multiply_f32;
}

bool PreparedInput::serves(const Panels& weights, InputForm form) const {
  const PanelView& view = weights.view();
  return form == form_ && !is_mapped_ && weights.source().empty() && view.block * view.blocks == view_.columns &&
         (form != InputForm::kInt8 || view.block == block_);
}

void PreparedInput::prepare(const Panels& weights, InputForm form, const Kernels& kernels, ThreadPool& pool,
                            const float* x, std::int64_t rows, std::int64_t columns) {
  const PanelView& view = weights.view();
  const std::int64_t places = view.block * view.blocks;
  form_ = form;
  block_ = view.block;
  is_mapped_ = !weights.source().empty();
  multiply_ = multiply_of(form, kernels);
  if (form == InputForm::kF32) grow(f32_, rows * places);
  if (form == InputForm::kBf16) grow(bf16_, rows * places);
  if (form == InputForm::kInt8) {
    grow(i8_, rows * places);
    grow(scales_, rows * view.blocks);
    grow(sums_, rows * view.blocks);
  }
  view_ = {.columns = places,
           .blocks = view.blocks,
           .f32 = f32_.data(),
           .bf16 = bf16_.data(),
           .i8 = i8_.data(),
           .scales = scales_.data(),
           .sums = sums_.data()};
  pool.parallel_for(rows, 8, [&](tensor::Range range) {
    for (std::int64_t t = range.begin; t < range.end; ++t) {
      const float* row = x + t * columns;
      if (form == InputForm::kF32) {
        place_row(row, columns, weights.source(), places, f32_.data() + t * places);
        continue;
      }
      if (is_mapped_ || places != columns) {
        float* const room = row_room(places);
        place_row(row, columns, weights.source(), places, room);
        row = room;
      }
      if (form == InputForm::kBf16) {
        kernels.to_bf16(row, places, bf16_.data() + t * places);
      } else {
        kernels.quantize(row, view.block, view.blocks, i8_.data() + t * places, scales_.data() + t * view.blocks,
                         sums_.data() + t * view.blocks);
      }
    }
  });
}

void PreparedInputs::prepare(std::span<const Panels* const> parts, const Kernels& kernels, bool is_exact,
                             ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t columns) {
  form_of_part_.clear();
  std::size_t used = 0;
  for (const Panels* const weights : parts) {
    const InputForm form = input_form(weights->shape().kind, kernels, is_exact);
    std::size_t at = 0;
    while (at < used && !forms_[at].serves(*weights, form)) ++at;
    if (at == used) {
      if (forms_.size() == used) forms_.emplace_back();
      forms_[used++].prepare(*weights, form, kernels, pool, x, rows, columns);
    }
    form_of_part_.push_back(at);
  }
}

}  // namespace yoke::ops::cpu
