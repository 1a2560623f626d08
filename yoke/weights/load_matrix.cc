// ModelFiles::load_matrix: which of the stored layouts a module has, and how its tensors become one Matrix.
#include <fmt/format.h>

#include "yoke/base/error.h"
#include "yoke/weights/model_files.h"

namespace yoke::weights {
namespace {

bool is_float(tensor::DType type) {
  return type == tensor::DType::kF32 || type == tensor::DType::kBf16 || type == tensor::DType::kF16;
}

// One module of one model: the loaders below read its tensors through this, which checks them and names them in errors.
class ModuleReader {
 public:
  ModuleReader(const ModelFiles& files, const std::string& module)
      : files_(files), module_(module), scheme_(files.quantization().scheme(module)) {}

  const WeightScheme& scheme() const { return scheme_; }
  bool has(const char* part) const { return files_.has_tensor(name(part)); }
  tensor::Tensor get(const char* part) const { return files_.view(name(part)); }

  tensor::Tensor get(const char* part, tensor::DType type, const tensor::Shape& shape) const {
    const tensor::Tensor tensor = get(part);
    if (tensor.type() != type || tensor.shape() != shape) {
      refuse(part, fmt::format("is {} of {} where {} of {} is needed", tensor::to_string(tensor.shape()),
                               tensor::to_string(tensor.type()), tensor::to_string(shape), tensor::to_string(type)));
    }
    return tensor;
  }
  tensor::Tensor get_matrix(const char* part, tensor::DType type) const {
    const tensor::Tensor tensor = get(part);
    if (tensor.type() != type || tensor.shape().rank() != 2 || tensor.count() == 0) {
      refuse(part, fmt::format("is {} of {} where a matrix of {} is needed", tensor::to_string(tensor.shape()),
                               tensor::to_string(tensor.type()), tensor::to_string(type)));
    }
    return tensor;
  }
  tensor::Tensor get_scales(const char* part) const {
    const tensor::Tensor tensor = get(part);
    if (!is_float(tensor.type()) || tensor.shape().rank() > 2 || tensor.count() == 0) {
      refuse(part, fmt::format("is {} of {}, which are no scales", tensor::to_string(tensor.shape()),
                               tensor::to_string(tensor.type())));
    }
    return tensor;
  }
  float get_scalar(const char* part) const {
    const tensor::Tensor tensor = files_.load_tensor(name(part));
    if (tensor.type() != tensor::DType::kF32 || tensor.count() != 1) refuse(part, "is not one f32");
    return tensor.data<float>()[0];
  }

  [[noreturn]] void refuse(const char* part, const std::string& what) const {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: the tensor '{}' {}", files_.file_of(name(part)).native(), name(part), what),
                "config.json and the weights do not belong together, or the file is damaged");
  }
  [[noreturn]] void refuse_as_unsupported(const std::string& what) const {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: '{}' {}", files_.folder().native(), module_, what),
                "yoke reads f32, bf16, f16; int4 and int8 of compressed-tensors; int4 of GPTQ; fp8 (e4m3); nvfp4");
  }
  void expect_bits(int bits) const {
    if (scheme_.bits && *scheme_.bits != bits) {
      refuse_as_unsupported(
          fmt::format("is declared with {}-bit weights; yoke reads {}-bit ones in this format", *scheme_.bits, bits));
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
tensor::Tensor load_order(const ModuleReader& module, const char* part, std::int64_t columns, std::int64_t groups,
                          std::int64_t group_size) {
  if (!module.has(part)) return {};
  module.get(part, tensor::DType::kI32, {columns});
  const tensor::Tensor order = module.files().load_tensor(module.name(part));
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
  const std::int64_t size =
      groups == 1 ? columns : module.scheme().group_size.value_or(tensor::ceil_divide(columns, groups));
  if (tensor::ceil_divide(columns, size) != groups) {
    module.refuse(scales, fmt::format("has {} groups, where {} columns in groups of {} make {}", groups, columns, size,
                                      tensor::ceil_divide(columns, size)));
  }
  return size;
}

// How many columns the packed words hold: the last word of a row may not be full.
std::int64_t packed_columns(const ModuleReader& module, const tensor::Tensor& packed, std::int64_t per_word) {
  if (!module.has("weight_shape")) return packed.extent(1) * per_word;
  const tensor::Tensor shape = module.files().load_tensor(module.name("weight_shape"));
  if (shape.count() != 2 || (shape.type() != tensor::DType::kI64 && shape.type() != tensor::DType::kI32)) {
    module.refuse("weight_shape", "is not two whole numbers");
  }
  const auto at = [&](int i) {
    return shape.type() == tensor::DType::kI64 ? shape.data<std::int64_t>()[i] : shape.data<std::int32_t>()[i];
  };
  if (at(0) != packed.extent(0) || at(1) < 1 || tensor::ceil_divide(at(1), per_word) != packed.extent(1)) {
    module.refuse("weight_shape", fmt::format("is {} x {}, but the packed values are {}", at(0), at(1),
                                              tensor::to_string(packed.shape())));
  }
  return at(1);
}

constexpr std::int64_t kBytesPerWord = 4;

// Words as the bytes that they are made of, the first `columns` of each row.
tensor::Tensor bytes_of_words(const tensor::Tensor& words, std::int64_t columns) {
  const auto offset = static_cast<std::size_t>(words.raw() - words.storage().data());
  return tensor::Tensor(words.storage(), {words.extent(0), words.extent(1) * kBytesPerWord}, tensor::DType::kU8, offset)
      .slice(1, {0, columns});
}

// Zeros of 8-bit weights, four rows to a word; as one byte for each row and group.
tensor::Tensor load_packed_zeros(const ModuleReader& module, std::int64_t rows, std::int64_t groups) {
  module.get("weight_zero_point", tensor::DType::kI32, {tensor::ceil_divide(rows, kBytesPerWord), groups});
  const tensor::Tensor words = module.files().load_tensor(module.name("weight_zero_point"));
  const tensor::Tensor zeros = tensor::Tensor::empty({rows, groups}, tensor::DType::kU8);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t group = 0; group < groups; ++group) {
      zeros.mutable_row<std::uint8_t>(row)[group] = std::to_integer<std::uint8_t>(
          words.raw()[(row / kBytesPerWord * groups + group) * kBytesPerWord + row % kBytesPerWord]);
    }
  }
  return zeros;
}

// compressed-tensors "pack-quantized".
tensor::Matrix load_packed_integers(const ModuleReader& module) {
  const bool is_int8 = module.scheme().bits == 8;
  if (!is_int8) module.expect_bits(4);
  const std::int64_t per_word = is_int8 ? kBytesPerWord : tensor::kNibblesPerWord;
  const tensor::Tensor packed = module.get_matrix("weight_packed", tensor::DType::kI32);
  tensor::Matrix matrix{.format = is_int8 ? tensor::MatrixFormat::kInt8 : tensor::MatrixFormat::kInt4,
                        .rows = packed.extent(0),
                        .columns = packed_columns(module, packed, per_word)};
  matrix.values = is_int8 ? bytes_of_words(packed, matrix.columns) : packed;
  matrix.scales = module.get_scales("weight_scale");
  if (matrix.scales.shape().rank() != 2 || matrix.scales.extent(0) != matrix.rows) {
    module.refuse("weight_scale",
                  fmt::format("is {} for {} rows", tensor::to_string(matrix.scales.shape()), matrix.rows));
  }
  const std::int64_t groups = matrix.scales.extent(1);
  matrix.scale_columns = group_size_of(module, "weight_scale", matrix.columns, groups);
  if (module.has("weight_zero_point") || module.scheme().symmetric == false) {
    matrix.zeros = is_int8 ? load_packed_zeros(module, matrix.rows, groups)
                           : module.get("weight_zero_point", tensor::DType::kI32,
                                        {tensor::ceil_divide(matrix.rows, tensor::kNibblesPerWord), groups});
  }
  matrix.order = load_order(module, "weight_g_idx", matrix.columns, groups, matrix.scale_columns);
  return matrix;
}

// compressed-tensors "int-quantized": one byte for each weight, with one scale for all, for each row or for each group.
tensor::Matrix load_int8(const ModuleReader& module) {
  const tensor::Tensor values = module.get_matrix("weight", tensor::DType::kI8);
  module.expect_bits(8);
  tensor::Matrix matrix{
      .format = tensor::MatrixFormat::kInt8, .rows = values.extent(0), .columns = values.extent(1), .values = values};
  const tensor::Tensor scales = module.get_scales("weight_scale");
  if (scales.count() == 1) {
    matrix.scale_rows = matrix.rows;
    matrix.scales = scales.reshaped({1, 1});
  } else if (scales.shape().rank() == 1 && scales.count() == matrix.rows) {
    matrix.scales = scales.reshaped({matrix.rows, 1});
  } else {
    matrix.scales = scales;
  }
  if (matrix.scales.shape().rank() != 2 || (matrix.scale_rows == 1 && matrix.scales.extent(0) != matrix.rows)) {
    module.refuse("weight_scale", fmt::format("is {} for {} rows", tensor::to_string(scales.shape()), matrix.rows));
  }
  const std::int64_t groups = matrix.scales.extent(1);
  matrix.scale_columns = group_size_of(module, "weight_scale", matrix.columns, groups);
  if (module.has("weight_zero_point") || module.scheme().symmetric == false) {
    if (matrix.scale_rows != 1)
      module.refuse("weight_zero_point", "belongs to one scale for all: yoke reads one a row");
    matrix.zeros = module.get("weight_zero_point", tensor::DType::kI8, scales.shape()).reshaped({matrix.rows, groups});
  }
  matrix.order = load_order(module, "weight_g_idx", matrix.columns, groups, matrix.scale_columns);
  return matrix;
}

// GPTQ stores everything by columns first: the same words, seen transposed.
tensor::Matrix load_gptq(const ModuleReader& module) {
  module.expect_bits(4);
  const tensor::Tensor packed = module.get_matrix("qweight", tensor::DType::kI32);
  tensor::Matrix matrix{.format = tensor::MatrixFormat::kInt4,
                        .rows = packed.extent(1),
                        .columns = packed.extent(0) * tensor::kNibblesPerWord};
  matrix.values = packed.transposed();
  const tensor::Tensor scales = module.get_scales("scales");
  if (scales.shape().rank() != 2 || scales.extent(1) != matrix.rows) {
    module.refuse("scales", fmt::format("is {} for {} outputs", tensor::to_string(scales.shape()), matrix.rows));
  }
  const std::int64_t groups = scales.extent(0);
  matrix.scales = scales.transposed();
  matrix.scale_columns = group_size_of(module, "scales", matrix.columns, groups);
  matrix.zeros =
      module.get("qzeros", tensor::DType::kI32, {groups, tensor::ceil_divide(matrix.rows, tensor::kNibblesPerWord)})
          .transposed();
  matrix.zero_offset = module.files().quantization().gptq_zero_offset();
  matrix.order = load_order(module, "g_idx", matrix.columns, groups, matrix.scale_columns);
  return matrix;
}

// "float-quantized", fbgemm_fp8, and the fp8 of DeepSeek and Qwen, whose weight_scale_inv is multiplied all the same.
tensor::Matrix load_fp8(const ModuleReader& module) {
  const tensor::Tensor values = module.get_matrix("weight", tensor::DType::kF8E4m3);
  tensor::Matrix matrix{
      .format = tensor::MatrixFormat::kFp8, .rows = values.extent(0), .columns = values.extent(1), .values = values};
  const char* const part = module.has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
  const tensor::Tensor scales = module.get_scales(part);
  const tensor::Shape& shape = scales.shape();
  matrix.scale_rows = matrix.rows;
  matrix.scale_columns = matrix.columns;
  if (scales.count() == 1) {
    matrix.scales = scales.reshaped({1, 1});
  } else if (scales.count() == matrix.rows && (shape.rank() == 1 || shape[1] == 1)) {
    matrix.scales = scales.reshaped({matrix.rows, 1});
    matrix.scale_rows = 1;
  } else {
    std::tie(matrix.scale_rows, matrix.scale_columns) = module.scheme().block;
    const tensor::Shape blocks{tensor::ceil_divide(matrix.rows, matrix.scale_rows),
                               tensor::ceil_divide(matrix.columns, matrix.scale_columns)};
    if (shape != blocks) {
      module.refuse(part,
                    fmt::format("is {}: neither one scale, nor one for each of {} rows, nor {} for blocks of {} x {}",
                                tensor::to_string(shape), matrix.rows, tensor::to_string(blocks), matrix.scale_rows,
                                matrix.scale_columns));
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

tensor::Matrix load_nvfp4(const ModuleReader& module, const Nvfp4Parts& parts) {
  const tensor::Tensor values = module.get_matrix(parts.values, tensor::DType::kU8);
  tensor::Matrix matrix{
      .format = tensor::MatrixFormat::kNvfp4, .rows = values.extent(0), .columns = values.extent(1) * 2};
  if (matrix.columns % tensor::kNvfp4Block != 0) {
    module.refuse(parts.values,
                  fmt::format("has {} columns, which are no blocks of {}", matrix.columns, tensor::kNvfp4Block));
  }
  matrix.values = values;
  matrix.scales =
      module.get("weight_scale", tensor::DType::kF8E4m3, {matrix.rows, matrix.columns / tensor::kNvfp4Block});
  matrix.scale_columns = tensor::kNvfp4Block;
  const float global = module.get_scalar(parts.global);
  if (!(global > 0)) module.refuse(parts.global, fmt::format("is {}", global));
  matrix.global_scale = parts.values == kCompressedNvfp4.values ? 1 / global : global;
  return matrix;
}

tensor::Matrix load_whole(const ModuleReader& module) {
  if (module.has("weight_packed")) {
    const tensor::DType type = module.get("weight_packed").type();
    if (type == tensor::DType::kI32) return load_packed_integers(module);
    if (module.has(kCompressedNvfp4.global)) return load_nvfp4(module, kCompressedNvfp4);
    module.refuse_as_unsupported(fmt::format("holds packed {} values without a global scale", tensor::to_string(type)));
  }
  if (module.has("qweight")) return load_gptq(module);
  const tensor::Tensor weight = module.get("weight");
  if (weight.type() == tensor::DType::kF8E4m3) return load_fp8(module);
  if (weight.type() == tensor::DType::kI8 && module.has("weight_scale")) return load_int8(module);
  if (weight.type() == tensor::DType::kU8 && module.has(kModelOptNvfp4.global))
    return load_nvfp4(module, kModelOptNvfp4);
  if (!is_float(weight.type()))
    module.refuse_as_unsupported(fmt::format("holds {} values", tensor::to_string(weight.type())));
  if (weight.shape().rank() != 2)
    module.refuse("weight", fmt::format("is {}: no matrix", tensor::to_string(weight.shape())));
  return tensor::plain_matrix(weight);
}

}  // namespace

bool ModelFiles::has_matrix(const std::string& module) const {
  return has_tensor(module + ".weight") || has_tensor(module + ".weight_packed") || has_tensor(module + ".qweight");
}

tensor::Matrix ModelFiles::load_matrix(const std::string& module, const tensor::Slice& slice) const {
  const bool is_plain = has_tensor(module + ".weight");
  if (!is_plain && has_matrix(module) && quantization_.ignores(module)) {
    throw Error(ErrorCode::kInvalid,
                fmt::format("{}: by config.json '{}' is not quantized, but the weights hold no '{}.weight'",
                            folder_.native(), module, module),
                "config.json and the weights do not belong together");
  }
  try {
    const tensor::Matrix matrix = load_whole(ModuleReader(*this, module));
    matrix.check();
    return matrix.sliced(slice);
  } catch (Error& error) {
    throw std::move(error).in(fmt::format("loading '{}'", module));
  }
}

}  // namespace yoke::weights
