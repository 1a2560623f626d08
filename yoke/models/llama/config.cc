#include "yoke/models/llama/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/spec/model_config.h"

namespace yoke::models::llama {
namespace {

template <class T>
T value_or(const Document& config, const char* key, T otherwise) {
  const Document* const value = config.find(key);
  return value != nullptr && value->kind != Document::Kind::kNull ? from_json<T>(*value) : otherwise;
}

Bias bias_if(bool given) { return given ? Bias::kGiven : Bias::kNone; }

// The window where the family has one. Mistral's holds unless config.json says null; Qwen's only where it says so.
std::int64_t read_window(const Document& config, spec::ModelArchitecture architecture) {
  // Where the key is absent; null says that there is none.
  const auto absent = static_cast<std::int64_t>(config.find("sliding_window") == nullptr ? 4096 : 0);
  switch (architecture) {
    case spec::ModelArchitecture::kLlama:
      return 0;
    case spec::ModelArchitecture::kMistral:
      return value_or(config, "sliding_window", absent);
    case spec::ModelArchitecture::kQwen2:
    case spec::ModelArchitecture::kQwen3:
    case spec::ModelArchitecture::kQwen3Moe:
      return value_or(config, "use_sliding_window", false) ? value_or(config, "sliding_window", absent) : 0;
  }
  return 0;
}

// `layer_types` says it for each layer; before there was such a list, Mistral's window held for all layers and Qwen's
// from `max_window_layers` on.
std::vector<std::int64_t> read_windows(const Document& config, const spec::ModelShape& shape) {
  constexpr std::int64_t kQwenFullLayers = 28;  // where config.json does not say
  std::vector<std::int64_t> windows(static_cast<std::size_t>(shape.layers), 0);
  const std::int64_t window = read_window(config, shape.architecture);
  if (window <= 0) return windows;
  const auto types = value_or(config, "layer_types", std::vector<std::string>{});
  const bool is_mistral = shape.architecture == spec::ModelArchitecture::kMistral;
  const auto first = is_mistral ? 0 : value_or(config, "max_window_layers", kQwenFullLayers);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const bool holds = i < types.size() ? types[i] == "sliding_attention" : static_cast<std::int64_t>(i) >= first;
    if (holds) windows[i] = window;
  }
  return windows;
}

bool can_split(const LlamaConfig& config, int size) {
  const bool kv = config.Hkv % size == 0 || size % config.Hkv == 0;
  return kv && config.H % size == 0 && config.F % size == 0;
}

}  // namespace

LlamaConfig read_llama_config(const Document& document) {
  const spec::ModelShape shape = spec::model_shape_from_config(document);
  if (const auto act = value_or<std::string>(document, "hidden_act", "silu"); act != "silu") {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the activation '{}' is not supported", document.where, printable(act, 40)),
                "models of the Llama kind use silu");
  }
  const bool is_qwen2 = shape.architecture == spec::ModelArchitecture::kQwen2;
  return {.architecture = shape.architecture,
          .L = shape.layers,
          .C = shape.width,
          .H = shape.heads,
          .Hkv = shape.kv_heads,
          .D = shape.head_width,
          .F = shape.mlp_width,
          .V = shape.vocabulary,
          .context = shape.context,
          .epsilon = static_cast<float>(shape.norm_epsilon),
          .rope = ops::rope_from_config(document, shape.head_width),
          .tied = shape.tied,
          .qkv_bias = bias_if(shape.qkv_bias),
          .o_bias = bias_if(!is_qwen2 && value_or(document, "attention_bias", false)),
          .mlp_bias = bias_if(value_or(document, "mlp_bias", false)),
          .qk_norm = shape.qk_norm,
          .windows = read_windows(document, shape)};
}

LlamaPart part_of(const LlamaConfig& config, int rank, int size) {
  if (!can_split(config, size)) {
    std::vector<int> sizes;
    for (int candidate = 1; candidate <= 64; ++candidate) {
      if (can_split(config, candidate)) sizes.push_back(candidate);
    }
    throw Error(ErrorCode::kInvalid,
                fmt::format("{} ranks cannot share {} query heads, {} heads of keys and values and an MLP of width {}",
                            size, config.H, config.Hkv, config.F),
                fmt::format("numbers of ranks that work: {}", fmt::join(sizes, ", ")));
  }
  LlamaPart part;
  part.heads = tensor::equal_part(config.H, rank, size);
  part.mlp = tensor::equal_part(config.F, rank, size);
  if (config.Hkv >= size) {
    part.kv_heads = tensor::equal_part(config.Hkv, rank, size);
  } else {
    const std::int64_t head = std::int64_t{rank} * config.Hkv / size;
    part.kv_heads = {head, head + 1};
  }
  return part;
}

}  // namespace yoke::models::llama
