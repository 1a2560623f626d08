// Activations in the form that packed weights want: their order of columns, padded, as f32, bf16 or int8.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "yoke/ops/cpu/panels.h"
#include "yoke/ops/thread_pool.h"

namespace yoke::ops::cpu {

enum class InputForm { kF32, kBf16, kInt8 };

// Which form these weights are multiplied with, and by what.
InputForm input_form(PanelKind kind, const Kernels& kernels, bool is_exact);
MultiplyPanel multiply_of(InputForm form, const Kernels& kernels);

// One form of some rows; memory is kept from call to call.
class PreparedInput {
 public:
  void prepare(const Panels& weights, InputForm form, const Kernels& kernels, ThreadPool& pool, const float* x,
               std::int64_t rows, std::int64_t columns);
  // Whether what is prepared also serves these weights.
  bool serves(const Panels& weights, InputForm form) const;
  const InputRows& rows() const { return view_; }
  MultiplyPanel multiply() const { return multiply_; }

 private:
  InputForm form_ = InputForm::kF32;
  std::int64_t block_ = 0;
  bool is_mapped_ = false;
  MultiplyPanel multiply_ = nullptr;
  InputRows view_;
  std::vector<float> f32_, scales_;
  std::vector<std::uint16_t> bf16_;
  std::vector<std::int8_t> i8_;
  std::vector<std::int32_t> sums_;
};

// What some weights need of the same rows, one form after the other: those that want the same share it.
class PreparedInputs {
 public:
  void prepare(std::span<const Panels* const> parts, const Kernels& kernels, bool is_exact, ThreadPool& pool,
               const float* x, std::int64_t rows, std::int64_t columns);
  const PreparedInput& of(std::size_t part) const { return forms_[form_of_part_[part]]; }

 private:
  std::vector<PreparedInput> forms_;
  std::vector<std::size_t> form_of_part_;
};

// Products of one panel with chosen rows, some at a time: store(i, sixteen products with row rows[i]).
template <class Store>
void multiply_rows(const Panels& weights, const PreparedInput& x, std::int64_t panel,
                   std::span<const std::int32_t> rows, const Store& store) {
  constexpr std::int64_t kAtOnce = 64;
  alignas(64) float out[kAtOnce * kPanelRows];
  for (std::int64_t done = 0; done < std::ssize(rows); done += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, std::ssize(rows) - done);
    x.multiply()(weights.view(), panel, x.rows(), rows.data() + done, count, out);
    for (std::int64_t i = 0; i < count; ++i) store(done + i, out + i * kPanelRows);
  }
}

}  // namespace yoke::ops::cpu
