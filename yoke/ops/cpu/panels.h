// Weights in the layout that kernels read: panels of 16 rows, each panel its scales first, then its zeros, then its
// weights (kernels.h): so a panel is read in order, and what is fetched ahead of one panel is the next one. One copy
// serves every number of input rows, and rows of a table too.
#pragma once
#include <span>
#include <vector>

#include "yoke/ops/backend.h"
#include "yoke/ops/cpu/kernels.h"

namespace yoke::ops::cpu {

// What packing makes of a matrix, known before its values are.
struct PanelShape {
  PanelKind kind = PanelKind::kF32;
  ScaleKind scale_kind = ScaleKind::kNone;
  bool has_zeros = false;
  bool is_mapped = false;  // columns lie elsewhere than in the matrix: with an order, or where groups need padding
  std::int64_t rows = 0, columns = 0;
  std::int64_t block = 0;
  std::int64_t blocks = 0;  // room; with an order, fewer may be used
  std::size_t panel_bytes = 0, zeros_at = 0, values_at = 0;

  std::int64_t panels() const { return tensor::ceil_divide(rows, kPanelRows); }
  std::size_t bytes() const;
};
PanelShape panel_shape(const tensor::MatrixInfo& info);

// Memory that kernels read from end to end: huge pages where it has some.
class WeightMemory {
 public:
  explicit WeightMemory(std::size_t bytes);  // zeros; Error(kExhausted)
  ~WeightMemory();
  WeightMemory(WeightMemory&& other) noexcept;
  WeightMemory& operator=(WeightMemory&&) = delete;
  std::byte* data() const { return data_; }

 private:
  void* base_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
};

class Panels {
 public:
  // Error(kInvalid) where a number of the matrix is none. `threads`: how many pack it, this one included.
  explicit Panels(const tensor::Matrix& matrix, int threads = 1);

  const PanelShape& shape() const { return shape_; }
  const PanelView& view() const { return view_; }
  // Which column of the matrix lies at each place; -1: padding. Empty: its own, then padding.
  std::span<const std::int32_t> source() const { return source_; }
  // A row of the matrix as numbers.
  void unpack_row(std::int64_t row, std::span<float> to) const;

 private:
  void map_columns(const tensor::Matrix& matrix);
  void pack_words(const tensor::Matrix& matrix, tensor::Range rows);
  void pack_values(const tensor::Matrix& matrix, tensor::Range rows);
  void pack_scales(const tensor::Matrix& matrix, tensor::Range rows);
  float weight_at(const std::byte* panel, std::int64_t lane, std::int64_t place) const;

  PanelShape shape_;
  WeightMemory memory_;
  PanelView view_;
  std::vector<std::int32_t> source_;
};

class CpuStack final : public PackedStack {
 public:
  CpuStack(std::span<const tensor::Matrix> stack, std::vector<Panels> packed, std::size_t bytes)
      : PackedStack(stack, bytes), packed_(std::move(packed)) {}
  const std::vector<Panels>& packed() const { return packed_; }

 private:
  std::vector<Panels> packed_;
};
const std::vector<Panels>& panels_of(const PackedStack& stack);

}  // namespace yoke::ops::cpu
