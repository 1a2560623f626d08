#include "yoke/ops/cpu/panels.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/ops/thread_pool.h"

namespace yoke::ops::cpu {
namespace {

constexpr std::int64_t kVector = 16;
constexpr std::int64_t kBlockMax = 128;     // columns that share a scale of the input
constexpr std::int64_t kOrderedBlock = 32;  // with an order, groups are of any length: short blocks waste little
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;

std::size_t up_to_line(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
std::int64_t up_to(std::int64_t count, std::int64_t step) { return tensor::ceil_divide(count, step) * step; }

PanelKind kind_of(const tensor::MatrixInfo& info) {
  switch (info.format) {
    case tensor::MatrixFormat::kInt4:
      return PanelKind::kInt4;
    case tensor::MatrixFormat::kInt8:
      return PanelKind::kInt8;
    case tensor::MatrixFormat::kFp8:
      return PanelKind::kFp8;
    case tensor::MatrixFormat::kNvfp4:
      return PanelKind::kNvfp4;
    case tensor::MatrixFormat::kPlain:
      break;
  }
  return info.value_type == tensor::DType::kF32    ? PanelKind::kF32
         : info.value_type == tensor::DType::kBf16 ? PanelKind::kBf16
                                                   : PanelKind::kF16;
}

ScaleKind scale_kind_of(const tensor::MatrixInfo& info) {
  if (info.format == tensor::MatrixFormat::kPlain) return ScaleKind::kNone;
  switch (info.scale_type) {
    case tensor::DType::kBf16:
      return ScaleKind::kBf16;
    case tensor::DType::kF16:
      return ScaleKind::kF16;
    case tensor::DType::kF8E4m3:
      return ScaleKind::kFp8;
    default:
      return ScaleKind::kF32;
  }
}

std::size_t scale_size(ScaleKind kind) {
  return kind == ScaleKind::kNone ? 0 : kind == ScaleKind::kF32 ? 4 : kind == ScaleKind::kFp8 ? 1 : 2;
}

// Bytes of one column of a panel, times two: nibbles take half a byte a row.
std::int64_t half_bytes_of(PanelKind kind) {
  switch (kind) {
    case PanelKind::kF32:
      return 8;
    case PanelKind::kF16:
    case PanelKind::kBf16:
      return 4;
    case PanelKind::kFp8:
    case PanelKind::kInt8:
      return 2;
    case PanelKind::kInt4:
    case PanelKind::kNvfp4:
      break;
  }
  return 1;
}

void cut_into_blocks(const tensor::MatrixInfo& info, PanelShape& shape) {
  if (shape.columns == 0) {
    shape.block = kVector;
  } else if (info.format == tensor::MatrixFormat::kPlain) {
    shape.block = up_to(shape.columns, kVector);
    shape.blocks = 1;
  } else if (info.has_order) {
    shape.block = kOrderedBlock;
    shape.blocks = (shape.columns + (kOrderedBlock - 1) * info.scales[1]) / kOrderedBlock;
    shape.is_mapped = true;
  } else {
    const std::int64_t group = std::min(info.scale_columns, shape.columns);
    shape.block = std::min(kBlockMax, up_to(group, kVector));
    shape.blocks = shape.columns / group * tensor::ceil_divide(group, shape.block) +
                   tensor::ceil_divide(shape.columns % group, shape.block);
    shape.is_mapped = group < shape.columns && group % shape.block != 0;
  }
}

const std::byte* element(const tensor::Tensor& tensor, std::int64_t row, std::int64_t column) {
  return tensor.raw() + (row * tensor.stride(0) + column * tensor.stride(1)) *
                            static_cast<std::int64_t>(tensor::size_of(tensor.type()));
}
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Four nibbles, each in the lower half of a byte.
constexpr std::uint32_t spread(std::uint32_t nibbles) {
  const std::uint32_t pairs = (nibbles | nibbles << 8) & 0x00ff00ffU;
  return (pairs | pairs << 4) & 0x0f0f0f0fU;
}

// A nibble's place in a panel: lane r of line p / 8, byte p % 4, the upper half for places 4 to 7.
std::byte& nibble_byte(std::byte* panel, std::int64_t lane, std::int64_t place) {
  return panel[place / 8 * 64 + lane * 4 + place % 4];
}
void put_nibble(std::byte* panel, std::int64_t lane, std::int64_t place, unsigned code) {
  nibble_byte(panel, lane, place) |= static_cast<std::byte>(code << (place % 8 < 4 ? 0 : 4));
}

std::int64_t element_place(PanelKind kind, std::int64_t lane, std::int64_t place) {
  switch (kind) {
    case PanelKind::kF32:
      return place * 64 + lane * 4;
    case PanelKind::kF16:
      return place * 32 + lane * 2;
    case PanelKind::kBf16:
      return place / 2 * 64 + lane * 4 + place % 2 * 2;
    default:
      return place / 4 * 64 + lane * 4 + place % 4;  // kFp8, kInt8
  }
}

float scale_at(const std::byte* scales, ScaleKind kind, std::int64_t index) {
  switch (kind) {
    case ScaleKind::kF32:
      return load<float>(scales + index * 4);
    case ScaleKind::kBf16:
      return to_float(load<tensor::Bf16>(scales + index * 2));
    case ScaleKind::kF16:
      return to_float(load<tensor::F16>(scales + index * 2));
    case ScaleKind::kFp8:
      return to_float(load<tensor::F8E4m3>(scales + index));
    case ScaleKind::kNone:
      break;
  }
  return 1;
}

// The trick that turns fp8 into f16 knows no NaN.
void require_number(std::byte code) {
  if ((code & std::byte{0x7f}) == std::byte{0x7f})
    throw Error(ErrorCode::kInvalid, "a weight or scale of type f8_e4m3 is not a number",
                "the file is damaged, or was quantized from a damaged one: download or convert it again");
}

unsigned nibble_of(const tensor::Matrix& matrix, std::int64_t row, std::int64_t column) {
  if (matrix.format == tensor::MatrixFormat::kNvfp4) {
    return load<std::uint8_t>(element(matrix.values, row, column / 2)) >> (column % 2 * 4) & 15U;
  }
  return load<std::uint32_t>(element(matrix.values, row, column / 8)) >> (column % 8 * 4) & 15U;
}

// Of i8 or u8: 128 for zero.
std::byte offset_byte(std::byte value, tensor::DType type) {
  return type == tensor::DType::kI8 ? value ^ std::byte{0x80} : value;
}

}  // namespace

std::size_t PanelShape::bytes() const {
  return static_cast<std::size_t>(panels()) * panel_bytes +
         (is_mapped ? static_cast<std::size_t>(block * blocks) * sizeof(std::int32_t) : 0);
}

PanelShape panel_shape(const tensor::MatrixInfo& info) {
  PanelShape shape{.kind = kind_of(info),
                   .scale_kind = scale_kind_of(info),
                   .has_zeros = info.has_zeros,
                   .rows = info.rows,
                   .columns = info.columns};
  cut_into_blocks(info, shape);
  const auto blocks = static_cast<std::size_t>(shape.blocks);
  shape.zeros_at = blocks * kPanelRows * scale_size(shape.scale_kind);
  shape.values_at = up_to_line(shape.zeros_at + (shape.has_zeros ? blocks * kPanelRows : 0));
  const std::size_t values =
      static_cast<std::size_t>(shape.block * kPanelRows * half_bytes_of(shape.kind) / 2) * blocks;
  shape.panel_bytes = up_to_line(shape.values_at + values);
  return shape;
}

WeightMemory::WeightMemory(std::size_t bytes) {
  const bool huge = bytes >= kHugePage;
  mapped_ = std::max<std::size_t>(bytes, 1) + (huge ? kHugePage : 0);
  base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base_ == MAP_FAILED) {
    throw Error(ErrorCode::kExhausted, fmt::format("there is no memory for {} bytes of weights", bytes),
                "use more nodes or a smaller model");
  }
  const auto at = reinterpret_cast<std::uintptr_t>(base_);
  data_ = reinterpret_cast<std::byte*>(huge ? (at + kHugePage - 1) / kHugePage * kHugePage : at);
  if (huge) madvise(data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}
WeightMemory::~WeightMemory() {
  if (base_ != nullptr) munmap(base_, mapped_);
}
WeightMemory::WeightMemory(WeightMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), mapped_(other.mapped_), data_(other.data_) {}

Panels::Panels(const tensor::Matrix& matrix, int threads)
    : shape_(panel_shape(tensor::describe(matrix))),
      memory_(static_cast<std::size_t>(shape_.panels()) * shape_.panel_bytes) {
  matrix.check();
  view_ = {.kind = shape_.kind,
           .scale_kind = shape_.scale_kind,
           .has_zeros = shape_.has_zeros,
           .block = shape_.block,
           .blocks = shape_.blocks,
           .global_scale = matrix.global_scale,
           .data = memory_.data(),
           .panel_bytes = shape_.panel_bytes,
           .zeros_at = shape_.zeros_at,
           .values_at = shape_.values_at};
  if (shape_.is_mapped) map_columns(matrix);
  ThreadPool(threads).parallel_for(
      shape_.panels(), std::max<std::int64_t>(1, shape_.panels() / (8 * threads)), [&](tensor::Range panels) {
        const tensor::Range rows{panels.begin * kPanelRows, std::min(shape_.rows, panels.end * kPanelRows)};
        pack_values(matrix, rows);
        if (shape_.scale_kind != ScaleKind::kNone) pack_scales(matrix, rows);
      });
}

// Groups one after the other, each from the begin of a block on.
void Panels::map_columns(const tensor::Matrix& matrix) {
  const std::int64_t groups = matrix.scales.extent(1);
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(groups));
  for (std::int64_t c = 0; c < shape_.columns; ++c) {
    const std::int64_t group = matrix.has_order() ? matrix.order.data<std::int32_t>()[c] : c / matrix.scale_columns;
    members[static_cast<std::size_t>(group)].push_back(static_cast<std::int32_t>(c));
  }
  for (const std::vector<std::int32_t>& group : members) {
    source_.insert(source_.end(), group.begin(), group.end());
    source_.resize(static_cast<std::size_t>(up_to(std::ssize(source_), shape_.block)), -1);
  }
  view_.blocks = std::ssize(source_) / shape_.block;
  YOKE_CHECK(view_.blocks <= shape_.blocks, "{} blocks in room for {}", view_.blocks, shape_.blocks);
}

// Whole words of eight nibbles, as they are most of what is loaded: sixteen words of each row of a panel are spread
// side by side, then written as sixteen lines.
void Panels::pack_words(const tensor::Matrix& matrix, tensor::Range rows) {
  constexpr std::int64_t kWords = 16;
  const std::int64_t step = matrix.values.stride(1) * static_cast<std::int64_t>(sizeof(std::uint32_t));
  const std::int64_t words = tensor::ceil_divide(shape_.columns, tensor::kNibblesPerWord);
  for (std::int64_t first = rows.begin; first < rows.end; first += kPanelRows) {
    std::byte* const panel =
        memory_.data() + static_cast<std::size_t>(first / kPanelRows) * shape_.panel_bytes + shape_.values_at;
    const std::int64_t lanes = std::min(kPanelRows, rows.end - first);
    for (std::int64_t begin = 0; begin < words; begin += kWords) {
      const std::int64_t count = std::min(kWords, words - begin);
      std::array<std::array<std::uint32_t, kPanelRows>, kWords> lines{};
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const std::byte* word = element(matrix.values, first + lane, begin);
        std::array<std::uint32_t, kWords> codes{};
        for (std::int64_t i = 0; i < count; ++i, word += step) {
          codes[static_cast<std::size_t>(i)] = load<std::uint32_t>(word);
        }
        for (std::uint32_t& code : codes) code = spread(code & 0xffffU) | spread(code >> 16) << 4;
        for (std::size_t i = 0; i < codes.size(); ++i) lines[i][static_cast<std::size_t>(lane)] = codes[i];
      }
      std::memcpy(panel + begin * 64, lines.data(), static_cast<std::size_t>(count) * 64);
    }
  }
}

void Panels::pack_values(const tensor::Matrix& matrix, tensor::Range rows) {
  if (shape_.kind == PanelKind::kInt4 && !shape_.is_mapped) return pack_words(matrix, rows);
  const bool nibbles = shape_.kind == PanelKind::kInt4 || shape_.kind == PanelKind::kNvfp4;
  const auto size = static_cast<std::int64_t>(tensor::size_of(matrix.values.type()));
  const std::int64_t places = shape_.is_mapped ? std::ssize(source_) : shape_.columns;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::byte* const panel =
        memory_.data() + static_cast<std::size_t>(row / kPanelRows) * shape_.panel_bytes + shape_.values_at;
    const std::int64_t lane = row % kPanelRows;
    for (std::int64_t p = 0; p < places; ++p) {
      const std::int64_t column = shape_.is_mapped ? source_[static_cast<std::size_t>(p)] : p;
      if (column < 0) continue;
      if (nibbles) {
        put_nibble(panel, lane, p, nibble_of(matrix, row, column));
        continue;
      }
      const std::byte* const from = element(matrix.values, row, column);
      if (shape_.kind == PanelKind::kFp8) require_number(*from);
      if (shape_.kind == PanelKind::kInt8) {
        panel[element_place(shape_.kind, lane, p)] = offset_byte(*from, matrix.values.type());
        continue;
      }
      std::memcpy(panel + element_place(shape_.kind, lane, p), from, static_cast<std::size_t>(size));
    }
  }
}

void Panels::pack_scales(const tensor::Matrix& matrix, tensor::Range rows) {
  const std::size_t size = scale_size(shape_.scale_kind);
  const bool has_order = matrix.has_order();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    std::byte* const panel = memory_.data() + static_cast<std::size_t>(row / kPanelRows) * shape_.panel_bytes;
    for (std::int64_t b = 0; b < view_.blocks; ++b) {
      const std::int64_t column =
          shape_.is_mapped ? source_[static_cast<std::size_t>(b * shape_.block)] : b * shape_.block;
      const std::int64_t group = has_order ? matrix.order.data<std::int32_t>()[column] : column / matrix.scale_columns;
      const std::int64_t at = b * kPanelRows + row % kPanelRows;
      const std::byte* const scale = element(matrix.scales, row / matrix.scale_rows, group);
      if (shape_.scale_kind == ScaleKind::kFp8) require_number(*scale);
      std::memcpy(panel + static_cast<std::size_t>(at) * size, scale, size);
      if (!shape_.has_zeros) continue;
      if (shape_.kind == PanelKind::kInt8) {
        panel[shape_.zeros_at + static_cast<std::size_t>(at)] =
            offset_byte(*element(matrix.zeros, row, group), matrix.zeros.type());
        continue;
      }
      const auto word = load<std::uint32_t>(element(matrix.zeros, row / tensor::kNibblesPerWord, group));
      const std::uint32_t zero =
          (word >> (row % tensor::kNibblesPerWord * 4) & 15U) + static_cast<unsigned>(matrix.zero_offset);
      panel[shape_.zeros_at + static_cast<std::size_t>(at)] = static_cast<std::byte>(zero);
    }
  }
}

float Panels::weight_at(const std::byte* panel, std::int64_t lane, std::int64_t place) const {
  const std::byte* const values = panel + shape_.values_at;
  const std::byte* const at = values + element_place(shape_.kind, lane, place);
  switch (shape_.kind) {
    case PanelKind::kF32:
      return load<float>(at);
    case PanelKind::kF16:
      return to_float(load<tensor::F16>(at));
    case PanelKind::kBf16:
      return to_float(load<tensor::Bf16>(at));
    default:
      break;
  }
  const std::int64_t index = place / shape_.block * kPanelRows + lane;
  const float scale = scale_at(panel, shape_.scale_kind, index);
  if (shape_.kind == PanelKind::kFp8) return to_float(load<tensor::F8E4m3>(at)) * scale;
  const int middle = shape_.kind == PanelKind::kInt8 ? tensor::kInt8Middle : 8;
  const int zero =
      shape_.has_zeros ? std::to_integer<int>(panel[shape_.zeros_at + static_cast<std::size_t>(index)]) : middle;
  if (shape_.kind == PanelKind::kInt8) return static_cast<float>(std::to_integer<int>(*at) - zero) * scale;
  const auto byte = std::to_integer<unsigned>(values[place / 8 * 64 + lane * 4 + place % 4]);
  const unsigned code = byte >> (place % 8 < 4 ? 0 : 4) & 15U;
  if (shape_.kind == PanelKind::kNvfp4) return tensor::kE2m1Values[code] * (scale * view_.global_scale);
  return static_cast<float>(static_cast<int>(code) - zero) * scale;
}

void Panels::unpack_row(std::int64_t row, std::span<float> to) const {
  YOKE_CHECK(row >= 0 && row < shape_.rows && std::ssize(to) == shape_.columns, "row {} of {} x {} into {}", row,
             shape_.rows, shape_.columns, to.size());
  const std::byte* const panel = memory_.data() + static_cast<std::size_t>(row / kPanelRows) * shape_.panel_bytes;
  const std::int64_t places = shape_.is_mapped ? std::ssize(source_) : shape_.columns;
  for (std::int64_t p = 0; p < places; ++p) {
    const std::int64_t column = shape_.is_mapped ? source_[static_cast<std::size_t>(p)] : p;
    if (column >= 0) to[static_cast<std::size_t>(column)] = weight_at(panel, row % kPanelRows, p);
  }
}

const std::vector<Panels>& panels_of(const PackedStack& stack) {
  const auto* const ours = dynamic_cast<const CpuStack*>(&stack);
  YOKE_CHECK(ours != nullptr, "a stack of {} x {} was packed by another backend", stack.rows(), stack.columns());
  return ours->packed();
}

}  // namespace yoke::ops::cpu
