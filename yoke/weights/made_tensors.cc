#include "yoke/weights/made_tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>

#include "yoke/tensor/matrix.h"

namespace yoke::weights {
namespace {

constexpr double kBiasDeviation = 0.1;
// Queries and keys of deviation 1 would make attention nearly an average of all tokens, the same whatever the last one
// is, and greedy text would soon repeat itself. With twice that on either side, scores have a deviation of 4: each head
// chooses a few tokens, and which ones depends on the last.
constexpr double kQueryKeyGain = 2;
constexpr double kFp8Largest = 448;
constexpr double kNvfp4ScaleMiddle = 256;  // of the 448 that a block's scale may be

// Groups of 128 are usual. In a narrow model they would leave too few to be split over ranks.
std::int64_t int4_group(const MakeModelOptions& options) {
  if (options.int4_group > 0) return options.int4_group;
  return options.shape.width >= 512 ? 128 : 32;
}

template <class T>
std::vector<std::byte> bytes_of(std::initializer_list<T> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

tensor::DType plain_type(MakeFormat format) {
  if (format == MakeFormat::kF32) return tensor::DType::kF32;
  return format == MakeFormat::kF16 ? tensor::DType::kF16 : tensor::DType::kBf16;
}

std::vector<std::byte> number_of(tensor::DType type, double value) {
  const auto number = static_cast<float>(value);
  if (type == tensor::DType::kF32) return bytes_of({number});
  return type == tensor::DType::kF16 ? bytes_of({tensor::to_f16(number).bits})
                                     : bytes_of({tensor::to_bf16(number).bits});
}

class TensorList {
 public:
  explicit TensorList(const MakeModelOptions& options)
      : options_(options), type_(plain_type(options.format)), group_(int4_group(options)) {}

  void add_plain_matrix(const std::string& name, std::int64_t rows, std::int64_t columns, double gain = 1) {
    add_normal(name, type_, {rows, columns}, gain * deviation(columns));
  }
  void add_norm(const std::string& name, std::int64_t width, double gain = 1) {
    add(name, type_, {width}, fill_repeated(number_of(type_, gain)));
  }
  void add_linear(const std::string& layer, const spec::LinearShape& linear) {
    const std::string module = layer + std::string(linear.module);
    const double gain = gain_of(linear);
    switch (options_.format) {
      case MakeFormat::kW4a16:
      case MakeFormat::kW8a16:
        add_integers(module, linear.outputs, linear.inputs, gain, options_.format == MakeFormat::kW4a16 ? 4 : 8);
        break;
      case MakeFormat::kFp8:
        add_fp8(module, linear.outputs, linear.inputs, gain);
        break;
      case MakeFormat::kNvfp4:
        add_nvfp4(module, linear.outputs, linear.inputs, gain);
        break;
      default:
        add_plain_matrix(module + ".weight", linear.outputs, linear.inputs, gain);
    }
    if (linear.has_bias) add_normal(module + ".bias", type_, {linear.outputs}, kBiasDeviation);
  }
  // The embedding or the head.
  void add_table(const std::string& module) {
    const spec::ModelShape& shape = options_.shape;
    if (options_.head == HeadFormat::kPlain) {
      add_plain_matrix(module + ".weight", shape.vocabulary, shape.width);
    } else {
      add_integers(module, shape.vocabulary, shape.width, 1, options_.head == HeadFormat::kInt4 ? 4 : 8);
    }
  }
  std::vector<MadeTensor> take() { return std::move(tensors_); }

 private:
  static double gain_of(const spec::LinearShape& linear) {
    const bool makes_scores = linear.module == "self_attn.q_proj" || linear.module == "self_attn.k_proj";
    return makes_scores ? kQueryKeyGain : 1;
  }
  static double deviation(std::int64_t columns) { return 1 / std::sqrt(static_cast<double>(columns)); }
  RandomWords words(const std::string& name) const { return {options_.seed, name}; }

  void add(const std::string& name, tensor::DType type, tensor::Shape shape, Fill fill) {
    tensors_.push_back({{name, type, shape}, std::move(fill)});
  }
  void add_normal(const std::string& name, tensor::DType type, tensor::Shape shape, double deviation) {
    std::shared_ptr<const NormalTable>& table = tables_[{type, deviation}];
    if (table == nullptr) table = std::make_shared<NormalTable>(type, deviation);
    add(name, type, shape, fill_normal(table, words(name)));
  }

  void add_integers(const std::string& module, std::int64_t rows, std::int64_t columns, double gain, int bits) {
    const std::string packed = module + ".weight_packed";
    add(packed, tensor::DType::kI32, {rows, columns * bits / 32},
        bits == 4 ? fill_int4(words(packed)) : fill_int8(words(packed)));
    add_scales(module, tensor::DType::kBf16, {rows, columns / group_},
               gain * deviation(columns) / (bits == 4 ? kInt4Deviation : kInt8Deviation));
    add(module + ".weight_shape", tensor::DType::kI64, {2}, fill_repeated(bytes_of({rows, columns})));
  }
  // The table's largest number becomes the largest that the type holds, so that all its values are used.
  void add_fp8(const std::string& module, std::int64_t rows, std::int64_t columns, double gain) {
    const double stretch = kFp8Largest / normal_table_largest();
    add_normal(module + ".weight", tensor::DType::kF8E4m3, {rows, columns}, stretch);
    add_scales(module, tensor::DType::kBf16, {rows, 1}, gain * deviation(columns) / stretch);
  }
  void add_nvfp4(const std::string& module, std::int64_t rows, std::int64_t columns, double gain) {
    const std::string packed = module + ".weight_packed";
    add(packed, tensor::DType::kU8, {rows, columns / 2}, fill_fp4(words(packed)));
    add_scales(module, tensor::DType::kF8E4m3, {rows, columns / tensor::kNvfp4Block}, kNvfp4ScaleMiddle);
    const auto divisor = static_cast<float>(kNvfp4ScaleMiddle * kFp4Deviation / (gain * deviation(columns)));
    add(module + ".weight_global_scale", tensor::DType::kF32, {1}, fill_repeated(bytes_of({divisor})));
  }
  void add_scales(const std::string& module, tensor::DType type, tensor::Shape shape, double middle) {
    const std::string name = module + ".weight_scale";
    add(name, type, shape, fill_scales(type, middle, words(name)));
  }

  const MakeModelOptions& options_;
  tensor::DType type_;
  std::int64_t group_;
  std::map<std::pair<tensor::DType, double>, std::shared_ptr<const NormalTable>> tables_;
  std::vector<MadeTensor> tensors_;
};

bool is_integers(MakeFormat format) { return format == MakeFormat::kW4a16 || format == MakeFormat::kW8a16; }

Document weight_scheme(const MakeModelOptions& options, MakeFormat format) {
  const auto text = [](const char* value) { return Document::string(value); };
  const bool is_fp8 = format == MakeFormat::kFp8;
  const bool is_integer = is_integers(format);
  Document group = Document::null();
  if (is_integer) group = Document::number(int4_group(options));
  if (format == MakeFormat::kNvfp4) group = Document::number(tensor::kNvfp4Block);
  Document scheme = Document::map();
  scheme.add("num_bits", Document::number(std::int64_t{is_fp8 || format == MakeFormat::kW8a16 ? 8 : 4}));
  scheme.add("type", text(is_integer ? "int" : "float"));
  scheme.add("symmetric", Document::boolean(true));
  scheme.add("strategy", text(is_integer ? "group" : is_fp8 ? "channel" : "tensor_group"));
  scheme.add("group_size", std::move(group));
  scheme.add("dynamic", Document::boolean(false));
  scheme.add("actorder", Document::null());
  return scheme;
}

Document config_group(const MakeModelOptions& options, MakeFormat format, const std::vector<std::string>& targets) {
  Document names = Document::list({});
  for (const std::string& target : targets) names.items.push_back(Document::string(target));
  Document group = Document::map();
  group.add("targets", std::move(names));
  group.add("weights", weight_scheme(options, format));
  group.add("input_activations", Document::null());
  group.add("output_activations", Document::null());
  return group;
}

const char* format_name(MakeFormat format) {
  if (is_integers(format)) return "pack-quantized";
  return format == MakeFormat::kFp8 ? "float-quantized" : "nvfp4-pack-quantized";
}

}  // namespace

std::vector<MadeTensor> made_tensors(const MakeModelOptions& options) {
  const spec::ModelShape& shape = options.shape;
  TensorList list(options);
  list.add_table("model.embed_tokens");
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    list.add_norm(layer + "input_layernorm.weight", shape.width);
    for (const spec::LinearShape& linear : spec::layer_linears(shape)) list.add_linear(layer, linear);
    if (shape.qk_norm) {
      list.add_norm(layer + "self_attn.q_norm.weight", shape.head_width, kQueryKeyGain);
      list.add_norm(layer + "self_attn.k_norm.weight", shape.head_width, kQueryKeyGain);
    }
    list.add_norm(layer + "post_attention_layernorm.weight", shape.width);
  }
  list.add_norm("model.norm.weight", shape.width);
  if (!shape.tied) list.add_table("lm_head");
  return list.take();
}

std::string_view torch_name(MakeFormat format) {
  if (format == MakeFormat::kF32) return "float32";
  return format == MakeFormat::kF16 ? "float16" : "bfloat16";
}

Document quantization_config(const MakeModelOptions& options) {
  const MakeFormat format = options.format;
  const bool is_plain = format == MakeFormat::kF32 || format == MakeFormat::kBf16 || format == MakeFormat::kF16;
  const bool has_plain_head = options.head == HeadFormat::kPlain;
  if (is_plain && has_plain_head) return {};
  const MakeFormat head = options.head == HeadFormat::kInt4 ? MakeFormat::kW4a16 : MakeFormat::kW8a16;
  Document groups = Document::map();
  // The first group that names a module decides.
  if (!has_plain_head) groups.add("group_0", config_group(options, head, {"model.embed_tokens", "lm_head"}));
  if (!is_plain) groups.add(has_plain_head ? "group_0" : "group_1", config_group(options, format, {"Linear"}));
  Document config = Document::map();
  config.add("quant_method", Document::string("compressed-tensors"));
  config.add("format", Document::string(format_name(is_plain ? head : format)));
  config.add("quantization_status", Document::string("compressed"));
  config.add("kv_cache_scheme", Document::null());
  config.add("global_compression_ratio", Document::null());
  Document ignored = Document::list({});
  if (has_plain_head) ignored.items.push_back(Document::string("lm_head"));
  config.add("ignore", std::move(ignored));
  config.add("config_groups", std::move(groups));
  return config;
}

}  // namespace yoke::weights
