#include "yoke/ops/cuda/weights.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/cuda/kernels.h"

namespace yoke::ops::cuda {
namespace {

using tensor::MatrixFormat;
using tensor::MatrixInfo;
using yoke::cuda::CudaMemory;

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kStagingBytes = std::size_t{16} << 20;
constexpr Seconds kPackLimit{60};
// A slice has whole rounds of loads (linear.cu), enough of them to be worth a sum of its own, and its activations fit
// into the shared memory of every GPU. There are about as many slices of panels as keep all warps of a GPU busy.
constexpr int kSliceStep = 8, kSliceMin = 16, kSliceMax = 48;  // blocks
constexpr int kSlicesWanted = 4608;

std::size_t up_to(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
int whole(std::int64_t count) {
  YOKE_CHECK(count >= 0 && count < (std::int64_t{1} << 31), "{}", count);
  return static_cast<int>(count);
}

int kind_of(const MatrixInfo& info) {
  switch (info.format) {
    case MatrixFormat::kInt4:
      return kInt4;
    case MatrixFormat::kInt8:
      return kInt8;
    case MatrixFormat::kFp8:
      return kFp8;
    case MatrixFormat::kNvfp4:
      return kNvfp4;
    case MatrixFormat::kPlain:
      break;
  }
  if (info.value_type == tensor::DType::kF32) return kF32;
  return info.value_type == tensor::DType::kBf16 ? kBf16 : kF16;
}

int scale_kind_of(const MatrixInfo& info) {
  if (info.format == MatrixFormat::kPlain) return kNoScale;
  if (info.scale_type == tensor::DType::kF32) return kF32Scale;
  if (info.scale_type == tensor::DType::kF8E4m3) return kE4m3Scale;
  return info.scale_type == tensor::DType::kBf16 ? kBf16Scale : kF16Scale;
}

std::size_t scale_bytes(int kind) { return kind == kNoScale ? 0 : kind == kF32Scale ? 4 : kind == kE4m3Scale ? 1 : 2; }

bool needs_order(const MatrixInfo& info) {
  if (info.format == MatrixFormat::kPlain || info.columns == 0) return false;
  return info.has_order || (info.scale_columns < info.columns && info.scale_columns % kStepColumns != 0);
}

bool are_alike(const MatrixInfo& a, const MatrixInfo& b) {
  return a.format == b.format && kind_of(a) == kind_of(b) && scale_kind_of(a) == scale_kind_of(b) &&
         a.scale_columns == b.scale_columns && a.has_zeros == b.has_zeros && !needs_order(a) && !needs_order(b);
}

void shape_columns(const MatrixInfo& info, PieceShape& piece) {
  PackedMatrix& m = piece.matrix;
  m.columns = whole(info.columns);
  m.blocks = whole(tensor::ceil_divide(info.columns, kBlockColumns));
  m.groups = 1;
  m.group_steps = (m.blocks * kBlockSteps + 2 * kBlockSteps - 1) / (2 * kBlockSteps) * (2 * kBlockSteps);
  if (m.scale_kind == kNoScale) return;
  if (piece.is_reordered) {
    // Every group is filled up to whole steps; how many columns each has is known only when the order is read.
    const std::int64_t groups = info.scales[1];
    m.blocks = whole(tensor::ceil_divide(info.columns / kStepColumns + groups, kBlockSteps));
    m.groups = m.blocks * kBlockSteps;
    m.group_steps = 1;
  } else if (info.scale_columns < info.columns) {
    m.groups = whole(tensor::ceil_divide(info.columns, info.scale_columns));
    m.group_steps = whole(info.scale_columns / kStepColumns);
  }
}

// Exact for all steps of a row: they are far fewer than 2^32 / group_steps.
void shape_groups(PackedMatrix& m) {
  m.group_factor =
      m.group_steps == 1 ? 0 : static_cast<unsigned>(((std::uint64_t{1} << 32) + m.group_steps - 1) / m.group_steps);
  m.scale_pair = static_cast<int>(2 * scale_bytes(m.scale_kind));
}

void shape_slices(PackedMatrix& m) {
  const int wanted = std::max(1, (kSlicesWanted + m.panel_count - 1) / std::max(1, m.panel_count));
  const int blocks = (std::max(1, m.blocks) + wanted - 1) / wanted;
  m.slice_blocks = std::clamp((blocks + kSliceStep - 1) / kSliceStep * kSliceStep, kSliceMin, kSliceMax);
  m.slices = std::max(1, (m.blocks + m.slice_blocks - 1) / m.slice_blocks);
}

void lay_out(PieceShape& piece) {
  const PackedMatrix& m = piece.matrix;
  const auto panels = static_cast<std::size_t>(m.panel_count);
  const std::size_t scales = panels * static_cast<std::size_t>(m.groups) * kPanelRows;
  piece.values = 0;
  piece.scales =
      up_to(panels * static_cast<std::size_t>(m.blocks) * static_cast<std::size_t>(block_pieces(m.kind)) * 512);
  piece.zeros = piece.scales + up_to(scales * scale_bytes(m.scale_kind));
  piece.panels = piece.zeros + (piece.has_zeros ? up_to(scales * sizeof(short)) : 0);
  piece.source = piece.panels + up_to(panels * sizeof(PanelRows));
  const std::size_t columns = static_cast<std::size_t>(m.blocks) * kBlockColumns;
  piece.bytes = piece.source + (piece.is_reordered ? up_to(columns * sizeof(int)) : 0);
}

bool is_for_experts(MatrixUse use) { return use == MatrixUse::kExpertGateUp || use == MatrixUse::kExpertDown; }

}  // namespace

std::vector<PieceShape> shape_stack(std::span<const MatrixInfo> stack, MatrixUse use) {
  std::vector<PieceShape> pieces;
  for (std::size_t first = 0; first < stack.size();) {
    std::size_t end = first + 1;
    while (end < stack.size() && are_alike(stack[first], stack[end])) ++end;
    PieceShape piece{.first_part = first, .parts = end - first};
    PackedMatrix& m = piece.matrix;
    m.kind = kind_of(stack[first]);
    m.scale_kind = scale_kind_of(stack[first]);
    piece.is_reordered = needs_order(stack[first]);
    piece.has_zeros = stack[first].has_zeros;
    for (std::size_t i = first; i < end; ++i) {
      piece.part_panels.push_back(whole(tensor::ceil_divide(stack[i].rows, kPanelRows)));
      m.panel_count += piece.part_panels.back();
    }
    const bool is_pair = use == MatrixUse::kLinear && stack.size() == 2 && piece.parts == 2;
    m.is_gated = (is_pair && stack[0].rows == stack[1].rows) || use == MatrixUse::kExpertGateUp ? 1 : 0;
    shape_columns(stack[first], piece);
    shape_groups(m);
    shape_slices(m);
    lay_out(piece);
    pieces.push_back(std::move(piece));
    first = end;
  }
  if (is_for_experts(use) && pieces.size() > 1) {
    throw Error(ErrorCode::kUnsupported,
                "experts whose weights have different formats, or columns in another order, "
                "are not for the cuda backend",
                "use --backend cpu");
  }
  return pieces;
}

// One thread's way to the device: memory on both sides that rows go through, and a stream.
class Packer::Uploader {
 public:
  explicit Uploader(const yoke::cuda::CudaDevice& device)
      : device_(device),
        stream_(device),
        pinned_(device, kStagingBytes),
        staged_(device, kStagingBytes),
        bad_(device, sizeof(int)) {}

  tensor::Stream stream() const { return stream_.stream(); }
  int* bad() const { return static_cast<int*>(bad_.data()); }
  void clear_bad() const { yoke::cuda::cuda_clear(device_, stream(), bad_.data(), sizeof(int)); }
  bool is_bad() const {
    int value = 0;
    stream_.copy(&value, bad_.data(), sizeof value);
    wait();
    return value != 0;
  }
  void wait() const { stream_.wait(Deadline::after(kPackLimit)); }

  // Dense rows of a matrix, all of which fit.
  const unsigned char* stage_rows(const tensor::Tensor& rows) {
    wait();  // for what the memory held before
    copy_dense(rows, pinned_.data());
    stream_.copy(staged_.data(), pinned_.data(), rows.bytes());
    return static_cast<const unsigned char*>(staged_.data());
  }
  // Anything small, in memory of its own.
  CudaMemory keep(const tensor::Tensor& tensor) const {
    const tensor::Tensor dense = tensor.is_contiguous() ? tensor : tensor.copied();
    return keep(dense.raw(), dense.bytes());
  }
  CudaMemory keep(const void* from, std::size_t size) const {
    CudaMemory memory(device_, std::max<std::size_t>(size, 1));
    put(memory.data(), from, size);
    return memory;
  }
  void put(void* to, const void* from, std::size_t size) const {
    stream_.copy(to, from, size);
    wait();
  }

 private:
  static void copy_dense(const tensor::Tensor& rows, std::byte* to) {
    const std::size_t size = tensor::size_of(rows.type());
    if (rows.stride(1) != 1 && rows.extent(1) > 1) {
      const tensor::Tensor dense = rows.copied();
      std::memcpy(to, dense.raw(), dense.bytes());
      return;
    }
    const std::size_t bytes = static_cast<std::size_t>(rows.extent(1)) * size;
    for (std::int64_t row = 0; row < rows.extent(0); ++row) {
      std::memcpy(to + static_cast<std::size_t>(row) * bytes,
                  rows.raw() + row * rows.stride(0) * static_cast<std::int64_t>(size), bytes);
    }
  }

  const yoke::cuda::CudaDevice& device_;
  yoke::cuda::CudaStream stream_;
  yoke::cuda::CudaHostMemory pinned_;
  CudaMemory staged_, bad_;
};

// Where the columns of a reordered matrix come from: each group filled up to whole steps.
struct Packer::Source {
  std::vector<int> columns;     // of each packed column, -1: none
  std::vector<int> step_group;  // the stored group of each step

  Source(const tensor::Matrix& matrix, int blocks)
      : columns(static_cast<std::size_t>(blocks) * kBlockColumns, -1),
        step_group(static_cast<std::size_t>(blocks) * kBlockSteps, 0) {
    std::vector<std::vector<int>> members(static_cast<std::size_t>(matrix.scales.extent(1)));
    const tensor::Tensor order = matrix.has_order() ? matrix.order.copied() : tensor::Tensor();
    for (std::int64_t c = 0; c < matrix.columns; ++c) {
      const std::int64_t group = matrix.has_order() ? order.data<std::int32_t>()[c] : c / matrix.scale_columns;
      members.at(static_cast<std::size_t>(group)).push_back(static_cast<int>(c));
    }
    std::size_t at = 0;
    for (std::size_t group = 0; group < members.size(); ++group) {
      for (const int column : members[group]) {
        if (at % kStepColumns == 0) step_group[at / kStepColumns] = static_cast<int>(group);
        columns[at++] = column;
      }
      at = (at + kStepColumns - 1) / kStepColumns * kStepColumns;
    }
  }
};

Packer::Packer(const yoke::cuda::CudaDevice& device, const Kernels& kernels) : device_(device), kernels_(kernels) {}
Packer::~Packer() = default;

std::unique_ptr<Packer::Uploader> Packer::take_uploader() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto uploader = std::move(idle_.back());
      idle_.pop_back();
      return uploader;
    }
  }
  return std::make_unique<Uploader>(device_);
}

std::unique_ptr<CudaStack> Packer::pack(std::span<const tensor::Matrix> stack, MatrixUse use) {
  std::vector<MatrixInfo> infos;
  for (const tensor::Matrix& matrix : stack) {
    matrix.check();
    infos.push_back(tensor::describe(matrix));
  }
  const std::vector<PieceShape> pieces = shape_stack(infos, use);
  std::size_t bytes = 0;
  for (const PieceShape& piece : pieces) bytes += piece.bytes;
  auto packed = std::make_unique<CudaStack>(stack, use, bytes);
  std::unique_ptr<Uploader> uploader = take_uploader();
  uploader->clear_bad();
  for (const PieceShape& piece : pieces) {
    pack_piece(piece, stack.subspan(piece.first_part, piece.parts), *uploader, *packed);
  }
  const bool is_bad = uploader->is_bad();
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(uploader));
  }
  if (is_bad) {
    throw Error(ErrorCode::kInvalid, "a weight is not a number", "the file may be damaged: fetch it again");
  }
  return packed;
}

namespace {

// Of each panel of a piece: where its rows go in the stack.
std::vector<PanelRows> panel_table(const PieceShape& shape, std::span<const tensor::Matrix> parts,
                                   std::span<const tensor::Range> rows, const std::vector<int>& first_panels,
                                   int step) {
  std::vector<PanelRows> table(static_cast<std::size_t>(shape.matrix.panel_count));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (int panel = 0; panel < shape.part_panels[i]; ++panel) {
      const std::int64_t first = std::int64_t{panel} * kPanelRows;
      table[static_cast<std::size_t>(first_panels[i] + panel * step)] = {
          .first = whole(rows[shape.first_part + i].begin + first),
          .count = whole(std::min<std::int64_t>(kPanelRows, parts[i].rows - first)),
          .factor = parts[i].format == MatrixFormat::kNvfp4 ? parts[i].global_scale : 1};
    }
  }
  return table;
}

}  // namespace

void Packer::pack_piece(const PieceShape& shape, std::span<const tensor::Matrix> parts, Uploader& uploader,
                        CudaStack& stack) {
  CudaMemory memory(device_, shape.bytes);
  auto* const base = static_cast<unsigned char*>(memory.data());
  PackedMatrix m = shape.matrix;
  m.values = base + shape.values;
  m.scales = base + shape.scales;
  m.zeros = shape.has_zeros ? reinterpret_cast<const short*>(base + shape.zeros) : nullptr;
  m.panels = reinterpret_cast<const PanelRows*>(base + shape.panels);
  const int step = m.is_gated != 0 ? 2 : 1;
  std::vector<int> first_panels;
  for (std::size_t i = 0, next = 0; i < parts.size(); ++i) {
    first_panels.push_back(static_cast<int>(next) + (step == 2 ? static_cast<int>(i % 2) : 0));
    if (step == 1 || i % 2 == 1) next += static_cast<std::size_t>(step * shape.part_panels[i]);
  }
  const std::vector<PanelRows> table = panel_table(shape, parts, stack.parts(), first_panels, step);
  uploader.put(base + shape.panels, table.data(), table.size() * sizeof(PanelRows));
  std::optional<CudaMemory> step_group;
  if (shape.is_reordered) {
    const Source source(parts.front(), m.blocks);
    uploader.put(base + shape.source, source.columns.data(), source.columns.size() * sizeof(int));
    m.source = reinterpret_cast<const int*>(base + shape.source);
    step_group.emplace(uploader.keep(source.step_group.data(), source.step_group.size() * sizeof(int)));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const tensor::Matrix& matrix = parts[i];
    if (matrix.rows == 0 || m.blocks == 0) continue;
    RawPart raw{.source = m.source,
                .step_group = step_group ? static_cast<const int*>(step_group->data()) : nullptr,
                .value_kind = m.kind,
                .is_signed = matrix.values.type() == tensor::DType::kI8 ? 1 : 0,
                .rows = whole(matrix.rows),
                .columns = whole(matrix.columns),
                .zero_offset = matrix.zero_offset,
                .first_panel = first_panels[i],
                .panel_step = step};
    std::optional<CudaMemory> scales, zeros;
    if (m.scale_kind != kNoScale) {
      scales.emplace(uploader.keep(matrix.scales));
      raw.scales = static_cast<const unsigned char*>(scales->data());
      raw.scale_rows = whole(matrix.scale_rows);
      raw.scale_groups = whole(matrix.scales.extent(1));
      if (matrix.has_zeros()) {
        zeros.emplace(uploader.keep(matrix.zeros));
        raw.zeros = static_cast<const unsigned char*>(zeros->data());
      }
      const std::int64_t threads = std::int64_t{shape.part_panels[i]} * m.groups * kPanelRows;
      kernels_.pack_scales.launch(
          uploader.stream(), {.blocks = {static_cast<unsigned>((threads + 255) / 256), 1, 1}, .threads = 256}, m, raw,
          const_cast<unsigned char*>(m.scales), const_cast<short*>(m.zeros), shape.part_panels[i], uploader.bad());
    }
    raw.row_bytes = matrix.values.extent(1) * static_cast<std::int64_t>(tensor::size_of(matrix.values.type()));
    const std::int64_t fitting = static_cast<std::int64_t>(kStagingBytes) / raw.row_bytes / kPanelRows * kPanelRows;
    YOKE_CHECK(fitting > 0, "a row of {} bytes", raw.row_bytes);
    for (std::int64_t first = 0; first < matrix.rows; first += fitting) {
      const tensor::Range rows{first, std::min(matrix.rows, first + fitting)};
      raw.values = uploader.stage_rows(matrix.values.slice(0, rows));
      raw.first_row = whole(first);
      raw.row_count = whole(rows.size());
      const auto panels = static_cast<unsigned>(tensor::ceil_divide(rows.size(), kPanelRows));
      kernels_.pack_values.launch(uploader.stream(),
                                  {.blocks = {static_cast<unsigned>(m.blocks), panels, 1}, .threads = 32}, m, raw,
                                  const_cast<unsigned char*>(m.values), uploader.bad());
    }
    uploader.wait();  // scales and zeros go
  }
  stack.add(m, std::move(memory));
}

}  // namespace yoke::ops::cuda
