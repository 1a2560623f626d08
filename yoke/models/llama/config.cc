#include "yoke/models/llama/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"

namespace yoke {
namespace {

constexpr std::int64_t kExtentMost = 1 << 24;  // of any number in a config: beyond is a damaged file

// What transformers assumes where a config says nothing, and what an architecture always has.
struct Family {
  const char* architecture;
  Bias qkv_bias = Bias::kNone;
  bool qk_norm = false;
  std::int64_t window = 0;      // where `sliding_window` is absent
  std::int64_t head_width = 0;  // where `head_dim` is absent; 0: C / H
};
constexpr Family kFamilies[] = {
    {.architecture = "LlamaForCausalLM"},
    {.architecture = "MistralForCausalLM", .window = 4096},
    {.architecture = "Qwen2ForCausalLM", .qkv_bias = Bias::kGiven},
    {.architecture = "Qwen3ForCausalLM", .qk_norm = true, .head_width = 128},
};

const Family& find_family(const std::string& architecture) {
  for (const Family& family : kFamilies) {
    if (architecture == family.architecture) return family;
  }
  throw Error(ErrorCode::kUnsupported, fmt::format("yoke cannot run a model of architecture '{}'", architecture),
              fmt::format("it runs {}", fmt::join(supported_architectures(), ", ")));
}

class ConfigReader {
 public:
  explicit ConfigReader(const Document& config) : config_(config) {}

  const Document* find(const char* key) const {
    const Document* const value = config_.find(key);
    return value != nullptr && value->kind != Document::Kind::kNull ? value : nullptr;
  }
  bool mentions(const char* key) const { return config_.find(key) != nullptr; }
  template <class T>
  T get(const char* key, T otherwise) const {
    const Document* const value = find(key);
    return value != nullptr ? from_document<T>(*value) : otherwise;
  }
  // Something countable: at least one.
  std::int64_t extent(const char* key, std::int64_t otherwise = 0) const {
    const Document* const value = find(key);
    if (value == nullptr && otherwise == 0) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", config_.where, key));
    }
    const std::int64_t number = value != nullptr ? from_document<std::int64_t>(*value) : otherwise;
    if (number < 1 || number > kExtentMost) {
      throw Error(ErrorCode::kInvalid, fmt::format("{}: {} makes no sense for '{}'", config_.where, number, key));
    }
    return number;
  }
  Bias bias(const char* key) const { return get(key, false) ? Bias::kGiven : Bias::kNone; }
  const Document& document() const { return config_; }

 private:
  const Document& config_;
};

std::string read_architecture(const ConfigReader& config) {
  const Document* const names = config.find("architectures");
  const auto all = names != nullptr ? from_document<std::vector<std::string>>(*names) : std::vector<std::string>{};
  if (all.empty()) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: 'architectures' names none", config.document().where),
                "is this the folder of a language model?");
  }
  return all.front();
}

// `layer_types` says it for each layer; before there was such a list, Mistral's window held for all layers and Qwen2's,
// where it is used at all, from `max_window_layers` on.
std::vector<std::int64_t> read_windows(const ConfigReader& config, const Family& family, std::int64_t layers) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  std::int64_t window =
      config.mentions("sliding_window") ? config.get<std::int64_t>("sliding_window", 0) : family.window;
  const bool is_qwen = std::string_view(family.architecture).starts_with("Qwen");
  if (std::string_view(family.architecture).starts_with("Llama")) window = 0;
  if (is_qwen && !config.get("use_sliding_window", false)) window = 0;
  if (window <= 0) return windows;
  if (const Document* const types = config.find("layer_types")) {
    const auto names = from_document<std::vector<std::string>>(*types);
    for (std::size_t i = 0; i < std::min(names.size(), windows.size()); ++i) {
      if (names[i] == "sliding_attention") windows[i] = window;
    }
    return windows;
  }
  const std::int64_t first = is_qwen ? config.get<std::int64_t>("max_window_layers", 0) : 0;
  for (std::int64_t i = std::max<std::int64_t>(first, 0); i < layers; ++i)
    windows[static_cast<std::size_t>(i)] = window;
  return windows;
}

void check_shape(const LlamaConfig& config, const std::string& where) {
  if (config.H % config.Hkv != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: {} query heads cannot share {} heads of keys and values", where,
                                                 config.H, config.Hkv));
  }
  if (config.D % 2 != 0) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a head width of {} cannot be rotated in pairs", where, config.D));
  }
}

bool can_split(const LlamaConfig& config, int size) {
  const bool kv = config.Hkv % size == 0 || size % config.Hkv == 0;
  return kv && config.H % size == 0 && config.F % size == 0;
}

}  // namespace

std::vector<std::string> supported_architectures() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.architecture);
  return names;
}

LlamaConfig read_llama_config(const Document& document) {
  const ConfigReader reader(document);
  LlamaConfig config;
  config.architecture = read_architecture(reader);
  const Family& family = find_family(config.architecture);
  if (const auto act = reader.get<std::string>("hidden_act", "silu"); act != "silu") {
    throw Error(ErrorCode::kUnsupported, fmt::format("{}: the activation '{}' is not supported", document.where, act),
                "models of the Llama kind use silu");
  }
  config.L = reader.extent("num_hidden_layers");
  config.C = reader.extent("hidden_size");
  config.H = reader.extent("num_attention_heads");
  config.Hkv = reader.extent("num_key_value_heads", config.H);
  const std::int64_t width = family.head_width > 0 ? family.head_width : std::max<std::int64_t>(1, config.C / config.H);
  config.D = reader.extent("head_dim", width);
  config.F = reader.extent("intermediate_size");
  config.V = reader.extent("vocab_size");
  config.context = reader.extent("max_position_embeddings", 2048);
  config.epsilon = reader.get("rms_norm_eps", 1e-6F);
  config.tied = reader.get("tie_word_embeddings", false);
  config.qk_norm = family.qk_norm;
  const Bias attention_bias = reader.bias("attention_bias");
  config.qkv_bias = family.qkv_bias == Bias::kGiven ? Bias::kGiven : attention_bias;
  config.o_bias = family.qkv_bias == Bias::kGiven ? Bias::kNone : attention_bias;
  config.mlp_bias = reader.bias("mlp_bias");
  config.windows = read_windows(reader, family, config.L);
  check_shape(config, document.where);
  config.rope = rope_from_config(document, config.D);
  return config;
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
  part.heads = equal_part(config.H, rank, size);
  part.mlp = equal_part(config.F, rank, size);
  if (config.Hkv >= size) {
    part.kv_heads = equal_part(config.Hkv, rank, size);
  } else {
    const std::int64_t head = std::int64_t{rank} * config.Hkv / size;
    part.kv_heads = {head, head + 1};
  }
  return part;
}

}  // namespace yoke
