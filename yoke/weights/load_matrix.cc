// ModelFiles::load_matrix: which of the stored layouts a module has, and how its tensors become one Matrix.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/weights/model_files.h"

namespace yoke {
namespace {

bool is_float(DType type) { return type == DType::kF32 || type == DType::kBf16 || type == DType::kF16; }

// One module of one model: the loaders below read its tensors through this, which checks them and names them in errors.
class ModuleReader {
 public:
  ModuleReader(const ModelFiles& files, const std::string& module)
      : files_(files), module_(module), scheme_(files.quantization().scheme(module)) {}

  const WeightScheme& scheme() const { return scheme_; }
  bool has(const char* part) const { return files_.has_tensor(name(part)); }
  Tensor get(const char* part) const { return files_.view(name(part)); }

  Tensor get(const char* part, DType type, const Shape& shape) const {
    const Tensor tensor = get(part);
    if (tensor.type() != type || tensor.shape() != shape) {
      refuse(part, fmt::format("is {} of {} where {} of {} is needed", to_string(tensor.shape()),
                               to_string(tensor.type()), to_string(shape), to_string(type)));
    }
    return tensor;
  }
  Tensor get_matrix(const char* part, DType type) const {
    const Tensor tensor = get(part);
    if (tensor.type() != type || tensor.shape().rank() != 2 || tensor.count() == 0) {
      refuse(part, fmt::format("is {} of {} where a matrix of {} is needed", to_string(tensor.shape()),
                               to_string(tensor.type()), to_string(type)));
    }
    return tensor;
  }
  Tensor get_scales(const char* part) const {
    const Tensor tensor = get(part);
    if (!is_float(tensor.type()) || tensor.shape().rank() > 2 || tensor.count() == 0) {
      refuse(part,
             fmt::format("is {} of {}, which are no scales", to_string(tensor.shape()), to_string(tensor.type())));
    }
    return tensor;
  }
  float get_scalar(const char* part) const {
    const Tensor tensor = files_.load_tensor(name(part));
    if (tensor.type() != DType::kF32 || tensor.count() != 1) refuse(part, "is not one f32");
    return tensor.data<float>()[0];
  }

  [[noreturn]] void refuse(const char* part, const std::string& what) const {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: the tensor '{}' {}", files_.file_of(name(part)).native(), name(part), what),
                "config.json and the weights do not belong together, or the file is damaged");
  }
  [[noreturn]] void refuse_as_unsupported(const std::string& what) const {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: '{}' {}", files_.folder().native(), module_, what),
                "yoke reads f32, bf16, f16; int4 of compressed-tensors and GPTQ; fp8 (e4m3); nvfp4");
  }
  void expect_bits(int bits) const {
    if (scheme_.bits && *scheme_.bits != bits) {
      refuse_as_unsupported(
          fmt::format("is said to have {}-bit weights; yoke reads {}-bit ones in this format", *scheme_.bits, bits));
    }
  }
  std::string name(const char* part) const { return module_ + "." + part; }
  const ModelFiles& files() const { return files_; }

 private:
  const ModelFiles& files_;
  const std::string& module_;
  const WeightScheme& scheme_;
};

// The group of each column, or nothing where groups are consecutive columns (or the file holds a place for an order
// that was never computed: all -1).
Tensor load_order(const ModuleReader& module, const char* part, std::int64_t columns, std::int64_t groups,
                  std::int64_t group_size) {
  if (!module.has(part)) return {};
  module.get(part, DType::kI32, {columns});
  const Tensor order = module.files().load_tensor(module.name(part));
  const std::span<const std::int32_t> group_of = order.span<std::int32_t>();
  bool is_unset = true;
  bool is_consecutive = true;
  for (std::size_t column = 0; column < group_of.size(); ++column) {
    is_unset &= group_of[column] == -1;
    is_consecutive &= group_of[column] == static_cast<std::int64_t>(column) / group_size;
  }
  if (is_unset || is_consecutive) return {};
  for (const std::int32_t group : group_of) {
    if (group < 0 || group >= groups) module.refuse(part, fmt::format("names group {} of {}", group, groups));
  }
  return order;
}

std::int64_t group_size_of(const ModuleReader& module, const char* scales, std::int64_t columns, std::int64_t groups) {
  const std::int64_t size = groups == 1 ? columns : module.scheme().group_size.value_or(ceil_divide(columns, groups));
  if (ceil_divide(columns, size) != groups) {
    module.refuse(scales, fmt::format("has {} groups, where {} columns in groups of {} make {}", groups, columns, size,
                                      ceil_divide(columns, size)));
  }
  return size;
}

// How many columns the packed words hold: the last word of a row may not be full.
std::int64_t packed_columns(const ModuleReader& module, const Tensor& packed) {
  if (!module.has("weight_shape")) return packed.extent(1) * kNibblesPerWord;
  const Tensor shape = module.files().load_tensor(module.name("weight_shape"));
  if (shape.count() != 2 || (shape.type() != DType::kI64 && shape.type() != DType::kI32)) {
    module.refuse("weight_shape", "is not two whole numbers");
  }
  const auto at = [&](int i) {
    return shape.type() == DType::kI64 ? shape.data<std::int64_t>()[i] : shape.data<std::int32_t>()[i];
  };
  if (at(0) != packed.extent(0) || at(1) < 1 || ceil_divide(at(1), kNibblesPerWord) != packed.extent(1)) {
    module.refuse("weight_shape",
                  fmt::format("says {} x {}, but the packed values are {}", at(0), at(1), to_string(packed.shape())));
  }
  return at(1);
}

// compressed-tensors "pack-quantized".
Matrix load_packed_int4(const ModuleReader& module) {
  module.expect_bits(4);
  const Tensor packed = module.get_matrix("weight_packed", DType::kI32);
  Matrix matrix{.format = MatrixFormat::kInt4, .rows = packed.extent(0), .columns = packed_columns(module, packed)};
  matrix.values = packed;
  matrix.scales = module.get_scales("weight_scale");
  if (matrix.scales.shape().rank() != 2 || matrix.scales.extent(0) != matrix.rows) {
    module.refuse("weight_scale", fmt::format("is {} for {} rows", to_string(matrix.scales.shape()), matrix.rows));
  }
  const std::int64_t groups = matrix.scales.extent(1);
  matrix.scale_columns = group_size_of(module, "weight_scale", matrix.columns, groups);
  if (module.has("weight_zero_point") || module.scheme().symmetric == false) {
    matrix.zeros = module.get("weight_zero_point", DType::kI32, {ceil_divide(matrix.rows, kNibblesPerWord), groups});
  }
  matrix.order = load_order(module, "weight_g_idx", matrix.columns, groups, matrix.scale_columns);
  return matrix;
}

// GPTQ stores everything by columns first: the same words, seen transposed.
Matrix load_gptq(const ModuleReader& module) {
  module.expect_bits(4);
  const Tensor packed = module.get_matrix("qweight", DType::kI32);
  Matrix matrix{.format = MatrixFormat::kInt4, .rows = packed.extent(1), .columns = packed.extent(0) * kNibblesPerWord};
  matrix.values = packed.transposed();
  const Tensor scales = module.get_scales("scales");
  if (scales.shape().rank() != 2 || scales.extent(1) != matrix.rows) {
    module.refuse("scales", fmt::format("is {} for {} outputs", to_string(scales.shape()), matrix.rows));
  }
  const std::int64_t groups = scales.extent(0);
  matrix.scales = scales.transposed();
  matrix.scale_columns = group_size_of(module, "scales", matrix.columns, groups);
  matrix.zeros = module.get("qzeros", DType::kI32, {groups, ceil_divide(matrix.rows, kNibblesPerWord)}).transposed();
  matrix.zero_offset = module.files().quantization().gptq_zero_offset();
  matrix.order = load_order(module, "g_idx", matrix.columns, groups, matrix.scale_columns);
  return matrix;
}

// "float-quantized", fbgemm_fp8, and the fp8 of DeepSeek and Qwen, whose weight_scale_inv is multiplied all the same.
Matrix load_fp8(const ModuleReader& module) {
  const Tensor values = module.get_matrix("weight", DType::kF8E4m3);
  Matrix matrix{.format = MatrixFormat::kFp8, .rows = values.extent(0), .columns = values.extent(1), .values = values};
  const char* const part = module.has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
  const Tensor scales = module.get_scales(part);
  const Shape& shape = scales.shape();
  matrix.scale_rows = matrix.rows;
  matrix.scale_columns = matrix.columns;
  if (scales.count() == 1) {
    matrix.scales = scales.reshaped({1, 1});
  } else if (scales.count() == matrix.rows && (shape.rank() == 1 || shape[1] == 1)) {
    matrix.scales = scales.reshaped({matrix.rows, 1});
    matrix.scale_rows = 1;
  } else {
    std::tie(matrix.scale_rows, matrix.scale_columns) = module.scheme().block;
    const Shape blocks{ceil_divide(matrix.rows, matrix.scale_rows), ceil_divide(matrix.columns, matrix.scale_columns)};
    if (shape != blocks) {
      module.refuse(
          part, fmt::format("is {}: neither one scale, nor one for each of {} rows, nor {} for blocks of {} x {}",
                            to_string(shape), matrix.rows, to_string(blocks), matrix.scale_rows, matrix.scale_columns));
    }
    matrix.scales = scales;
  }
  return matrix;
}

struct Nvfp4Parts {
  const char* values;
  const char* global;
};
// compressed-tensors divides by its global scale, ModelOpt multiplies with its own.
constexpr Nvfp4Parts kCompressedNvfp4 = {"weight_packed", "weight_global_scale"};
constexpr Nvfp4Parts kModelOptNvfp4 = {"weight", "weight_scale_2"};

Matrix load_nvfp4(const ModuleReader& module, const Nvfp4Parts& parts) {
  const Tensor values = module.get_matrix(parts.values, DType::kU8);
  Matrix matrix{.format = MatrixFormat::kNvfp4, .rows = values.extent(0), .columns = values.extent(1) * 2};
  if (matrix.columns % kNvfp4Block != 0) {
    module.refuse(parts.values, fmt::format("has {} columns, which are no blocks of {}", matrix.columns, kNvfp4Block));
  }
  matrix.values = values;
  matrix.scales = module.get("weight_scale", DType::kF8E4m3, {matrix.rows, matrix.columns / kNvfp4Block});
  matrix.scale_columns = kNvfp4Block;
  const float global = module.get_scalar(parts.global);
  if (!(global > 0)) module.refuse(parts.global, fmt::format("is {}", global));
  matrix.global_scale = parts.values == kCompressedNvfp4.values ? 1 / global : global;
  return matrix;
}

Matrix load_whole(const ModuleReader& module) {
  if (module.has("weight_packed")) {
    const DType type = module.get("weight_packed").type();
    if (type == DType::kI32) return load_packed_int4(module);
    if (module.has(kCompressedNvfp4.global)) return load_nvfp4(module, kCompressedNvfp4);
    module.refuse_as_unsupported(fmt::format("holds packed {} values without a global scale", to_string(type)));
  }
  if (module.has("qweight")) return load_gptq(module);
  const Tensor weight = module.get("weight");
  if (weight.type() == DType::kF8E4m3) return load_fp8(module);
  if (weight.type() == DType::kU8 && module.has(kModelOptNvfp4.global)) return load_nvfp4(module, kModelOptNvfp4);
  if (!is_float(weight.type())) module.refuse_as_unsupported(fmt::format("holds {} values", to_string(weight.type())));
  if (weight.shape().rank() != 2) module.refuse("weight", fmt::format("is {}: no matrix", to_string(weight.shape())));
  return plain_matrix(weight);
}

}  // namespace

bool ModelFiles::has_matrix(const std::string& module) const {
  return has_tensor(module + ".weight") || has_tensor(module + ".weight_packed") || has_tensor(module + ".qweight");
}

Matrix ModelFiles::load_matrix(const std::string& module, const Slice& slice) const {
  const bool is_plain = has_tensor(module + ".weight");
  if (!is_plain && has_matrix(module) && quantization_.ignores(module)) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: config.json says that '{}' is not quantized, but the weights hold no '{}.weight'",
                            folder_.native(), module, module),
                "config.json and the weights do not belong together");
  }
  try {
    const Matrix matrix = load_whole(ModuleReader(*this, module));
    matrix.check();
    return matrix.sliced(slice);
  } catch (Error& error) {
    throw std::move(error).in(fmt::format("loading '{}'", module));
  }
}

}  // namespace yoke
