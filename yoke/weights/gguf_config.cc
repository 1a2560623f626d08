// What a GGUF file's metadata say, as config.json.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/text.h"
#include "yoke/spec/model_config.h"
#include "yoke/weights/import_gguf.h"

namespace yoke::weights {
namespace {

[[noreturn]] void refuse_family(const GgufFile& file, const std::string& what) {
  throw Error(ErrorCode::kUnsupported, fmt::format("{}: {}", file.source(), what),
              "yoke imports the families llama, qwen2 and qwen3, without experts");
}

// As short as the number can be written, so that 1e-05 stays that.
double shortest(double value) { return std::stod(fmt::format("{}", static_cast<float>(value))); }

// Llama 3.1 stretches its long waves; GGUF keeps what each frequency is divided by.
std::vector<float> llama3_factors(const spec::Llama3Rope& rope, double theta, std::int64_t width) {
  std::vector<float> factors;
  const double low = static_cast<double>(rope.original_context) / rope.low_frequency_factor;
  const double high = static_cast<double>(rope.original_context) / rope.high_frequency_factor;
  for (std::int64_t i = 0; i < width; i += 2) {
    const double wave =
        2 * 3.14159265358979323846 * std::pow(theta, static_cast<double>(i) / static_cast<double>(width));
    double factor = 1;
    if (wave > low) {
      factor = rope.factor;
    } else if (wave >= high) {
      const double smooth = (static_cast<double>(rope.original_context) / wave - rope.low_frequency_factor) /
                            (rope.high_frequency_factor - rope.low_frequency_factor);
      factor = 1 / ((1 - smooth) / rope.factor + smooth);
    }
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

std::optional<spec::Llama3Rope> read_factors(const GgufFile& file, const spec::ModelShape& shape) {
  const GgufTensor* const tensor = file.find("rope_freqs.weight");
  if (tensor == nullptr) return std::nullopt;
  std::vector<float> found(tensor->bytes.size() / sizeof(float));
  if (tensor->type == GgufType::kF32) std::memcpy(found.data(), tensor->bytes.data(), found.size() * sizeof(float));
  for (const double factor : {8.0, 32.0, 4.0, 16.0}) {
    const spec::Llama3Rope rope{.factor = factor};
    const std::vector<float> expected = llama3_factors(rope, shape.rope_theta, shape.head_width);
    bool same = expected.size() == found.size();
    for (std::size_t i = 0; same && i < found.size(); ++i)
      same = std::abs(found[i] - expected[i]) <= 1e-4F * expected[i];
    if (same) return rope;
  }
  refuse_family(file, "its rope_freqs.weight are the factors of no Llama 3 that yoke knows");
}

}  // namespace

Document gguf_config(const GgufFile& file) {
  const std::string family = file.required_text("general.architecture");
  spec::ModelShape shape;
  if (family == "llama") {
    shape.architecture = spec::ModelArchitecture::kLlama;
  } else if (family == "qwen2") {
    shape.architecture = spec::ModelArchitecture::kQwen2;
  } else if (family == "qwen3") {
    shape.architecture = spec::ModelArchitecture::kQwen3;
  } else {
    refuse_family(file, fmt::format("it is of the family '{}'", printable(family, 40)));
  }
  const auto key = [&](const char* name) { return family + "." + name; };
  if (file.integer(key("expert_count")).value_or(0) > 0) refuse_family(file, "it has experts");
  if (const auto scaling = file.text(key("rope.scaling.type")); scaling && *scaling != "none") {
    refuse_family(file, fmt::format("its rope scaling is '{}'", printable(*scaling, 40)));
  }
  shape.layers = file.required_size(key("block_count"));
  shape.width = file.required_size(key("embedding_length"));
  shape.mlp_width = file.required_size(key("feed_forward_length"));
  shape.heads = file.required_size(key("attention.head_count"));
  shape.kv_heads =
      file.has(key("attention.head_count_kv")) ? file.required_size(key("attention.head_count_kv")) : shape.heads;
  shape.head_width = file.has(key("attention.key_length")) ? file.required_size(key("attention.key_length"))
                                                           : shape.width / shape.heads;
  shape.context = file.required_size(key("context_length"));
  shape.norm_epsilon = shortest(file.real(key("attention.layer_norm_rms_epsilon")).value_or(1e-5));
  shape.rope_theta = shortest(file.real(key("rope.freq_base")).value_or(10000));
  const std::int64_t turned = file.integer(key("rope.dimension_count")).value_or(shape.head_width);
  if (turned != shape.head_width) {
    refuse_family(file, fmt::format("only {} of {} numbers of its heads are turned", turned, shape.head_width));
  }
  const GgufTensor* const table = file.find("token_embd.weight");
  if (table == nullptr || table->columns != shape.width) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: there is no embedding of width {}", file.source(), shape.width));
  }
  shape.vocabulary = table->rows;
  shape.tied = file.find("output.weight") == nullptr;
  shape.qkv_bias = file.find("blk.0.attn_q.bias") != nullptr;
  shape.qk_norm = shape.architecture == spec::ModelArchitecture::kQwen3;
  shape.rope_scaling = read_factors(file, shape);
  Document config = spec::config_of_model_shape(shape);
  for (auto& [name, field] : config.fields) field.where = fmt::format("{}: {}", file.source(), name);
  spec::model_shape_from_config(config);  // refuses what makes no sense
  return config;
}

}  // namespace yoke::weights
