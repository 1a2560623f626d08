#include "yoke/spec/model_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "yoke/base/check.h"

namespace yoke::spec {
namespace {

std::int64_t attention_parameters(const ModelFacts& m) {
  if (m.latent) {
    const LatentAttention& a = *m.latent;
    const std::int64_t head = a.plain_width + a.rotary_width;
    const std::int64_t query = a.query_rank > 0 ? a.query_rank * m.width + a.query_rank + a.query_rank * m.heads * head
                                                : m.width * m.heads * head;
    return query + (a.kv_rank + a.rotary_width) * m.width + a.kv_rank +
           a.kv_rank * m.heads * (a.plain_width + a.value_width) + m.heads * a.value_width * m.width;
  }
  const std::int64_t q = m.heads * m.head_width;
  const std::int64_t kv = m.kv_heads * m.head_width;
  std::int64_t count = m.width * (q + 2 * kv) + q * m.width;
  if (m.qkv_bias) count += q + 2 * kv;
  if (m.qk_norm) count += 2 * m.head_width;
  if (m.gpt_oss) count += q + 2 * kv + m.width + m.heads;
  return count;
}

std::int64_t mlp_parameters(const ModelFacts& m, std::int64_t inner) { return (m.gated ? 3 : 2) * m.width * inner; }

// total = rest + E*expert + embeddings and active = rest + k*expert + embeddings, solved for rest and expert.
void derive_from_totals(const ModelFacts& m, ModelCount& count) {
  if (m.experts > m.experts_used) {
    count.expert = (m.total_given - m.active_given) / (m.experts - m.experts_used);
    count.rest = m.active_given - m.experts_used * count.expert - count.embedding_only - count.head;
  } else {
    count.expert = 0;
    count.rest = m.total_given - count.embedding_only - count.head;
  }
  count.rest = std::max<std::int64_t>(count.rest, 0);
  count.total = m.total_given;
  count.active = m.active_given > 0 ? m.active_given : m.total_given;
}

std::string squeezed(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

struct NameSizes {
  double total = 0;
  double active = 0;
};

// "397b-a17b", "504B", "9B LoRA": numbers before a 'b', the one after an 'a' is active.
NameSizes sizes_in_name(std::string_view name) {
  NameSizes sizes;
  for (std::size_t i = 0; i < name.size();) {
    const bool starts = name[i] >= '0' && name[i] <= '9' &&
                        (i == 0 || (name[i - 1] != '.' && !std::isalnum(static_cast<unsigned char>(name[i - 1]))));
    const bool is_active = i > 1 && (name[i - 1] == 'a' || name[i - 1] == 'A') && name[i] >= '0' && name[i] <= '9' &&
                           !std::isalnum(static_cast<unsigned char>(name[i - 2]));
    if (!starts && !is_active) {
      ++i;
      continue;
    }
    double value = 0;
    const auto [end, failure] = std::from_chars(name.data() + i, name.data() + name.size(), value);
    const std::size_t after = static_cast<std::size_t>(end - name.data());
    const bool is_size = failure == std::errc{} && after < name.size() && (name[after] == 'b' || name[after] == 'B') &&
                         (after + 1 == name.size() || !std::isalnum(static_cast<unsigned char>(name[after + 1])));
    if (is_size && value > 0 && value < 1e5) (is_active ? sizes.active : sizes.total) = value * 1e9;
    i = std::max(after, i + 1);
  }
  return sizes;
}

}  // namespace

ModelCount count_model(const ModelFacts& m) {
  ModelCount count;
  count.embedding = m.vocabulary * m.width;
  count.head = count.embedding;
  count.embedding_only = m.tied ? 0 : count.embedding;
  count.attention = m.layers * attention_parameters(m);
  if (m.total_given > 0) {
    derive_from_totals(m, count);
    count.attention = std::min(count.attention, count.rest);
    return count;
  }
  const std::int64_t mixtures = m.experts > 0 ? m.layers - m.dense_layers : 0;
  const std::int64_t shared = m.shared_width > 0 ? m.shared_width : m.expert_width;
  count.rest = count.attention + m.layers * m.norms_per_layer * m.width + m.width +
               (m.layers - mixtures) * mlp_parameters(m, m.mlp_width) +
               mixtures * (m.shared_experts * mlp_parameters(m, shared) + m.width * m.experts);
  if (m.gpt_oss) count.rest += mixtures * m.experts;
  const std::int64_t biases = m.gpt_oss ? 2 * m.expert_width + m.width : 0;
  count.expert = mixtures * (mlp_parameters(m, m.expert_width) + biases);
  count.total = count.embedding_only + count.head + count.rest + m.experts * count.expert;
  count.active = count.embedding_only + count.head + count.rest + m.experts_used * count.expert;
  return count;
}

double rough_parameters(const ModelFacts& m) {
  const auto wide = [](std::int64_t value) { return static_cast<double>(value); };
  const double mlps =
      wide(m.mlp_width) + wide(m.experts + m.shared_experts) * wide(std::max(m.expert_width, m.shared_width));
  double attention = 4 * wide(m.width) * wide(m.heads) * wide(m.head_width);
  if (m.latent) {
    const LatentAttention& a = *m.latent;
    attention = wide(m.heads + 1) * wide(a.plain_width + a.rotary_width + a.value_width + 1) *
                wide(a.query_rank + a.kv_rank + m.width + 1);
  }
  return wide(m.layers) * (attention + wide(m.width) * (3 * mlps + wide(m.experts) + wide(m.norms_per_layer))) +
         2 * wide(m.vocabulary) * wide(m.width);
}

bool is_plausible(const ModelFacts& m) {
  constexpr std::int64_t kExtentMax = std::int64_t{1} << 24;
  const auto between = [](std::int64_t value, std::int64_t low, std::int64_t high) {
    return value >= low && value <= high;
  };
  bool is_sane = between(m.context, 0, std::int64_t{1} << 40) && between(m.experts_used, 0, m.experts) &&
                 between(m.full_layers, 0, m.layers) && between(m.dense_layers, 0, m.layers) &&
                 between(m.norms_per_layer, 0, 64) && between(m.total_given, 0, 1'000'000'000'000'000) &&
                 between(m.active_given, 0, m.total_given);
  for (const std::int64_t size : {m.layers, m.width, m.heads, m.kv_heads, m.head_width}) {
    is_sane = is_sane && between(size, 1, kExtentMax);
  }
  for (const std::int64_t size : {m.mlp_width, m.experts, m.expert_width, m.shared_experts, m.shared_width,
                                  m.vocabulary, m.window, m.selected_tokens}) {
    is_sane = is_sane && between(size, 0, kExtentMax);
  }
  if (m.latent) {
    for (const std::int64_t size : {m.latent->query_rank, m.latent->kv_rank, m.latent->plain_width,
                                    m.latent->rotary_width, m.latent->value_width}) {
      is_sane = is_sane && between(size, 0, kExtentMax);
    }
  }
  return is_sane && m.heads % m.kv_heads == 0 && rough_parameters(m) < 1e15;
}

double cache_values(const ModelFacts& m, std::int64_t tokens, CacheRule rule) {
  const auto held = static_cast<double>(tokens);
  const auto layers = static_cast<double>(m.layers);
  if (m.latent) {
    const auto latent = static_cast<double>(m.latent->kv_rank + m.latent->rotary_width);
    // What sparse attention reads: the selected tokens, and a small index of every token (128 bytes: 64 values of 2).
    if (m.selected_tokens > 0 && rule == CacheRule::kRead) {
      return layers * (latent * std::min(held, static_cast<double>(m.selected_tokens)) + 64 * held);
    }
    return layers * latent * held;
  }
  const auto per_layer = static_cast<double>(2 * m.kv_heads * m.head_width);
  if (m.short_layers == ShortLayers::kNone) return per_layer * layers * held;
  const auto full = static_cast<double>(m.full_layers);
  double in_short = 0;
  if (m.short_layers == ShortLayers::kWindow) {
    in_short = rule == CacheRule::kAllocated ? held : std::min(held, static_cast<double>(m.window));
  }
  return per_layer * (full * held + (layers - full) * in_short);
}

ModelFacts facts_of_shape(const ModelShape& shape) {
  return {.name = std::string(shape.name),
          .layers = shape.layers,
          .width = shape.width,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_width = shape.head_width,
          .mlp_width = shape.mlp_width,
          .vocabulary = shape.vocabulary,
          .context = shape.context,
          .tied = shape.tied,
          .qkv_bias = shape.qkv_bias,
          .qk_norm = shape.qk_norm,
          .source = "published config.json; the parameter sum is the published total"};
}

std::vector<std::string> model_fact_names() {
  std::vector<std::string> names;
  for (const ModelFacts& model : model_facts()) names.push_back(model.name);
  return names;
}

const ModelFacts* find_model_facts(std::string_view name) {
  // Other names that people use, without dots and dashes.
  static constexpr std::array kAliases = {
      std::pair{std::string_view("deepseekr1"), std::string_view("deepseekv3")},
      std::pair{std::string_view("deepseekv3r1"), std::string_view("deepseekv3")},
      std::pair{std::string_view("gemma327btext"), std::string_view("gemma327b")},
      std::pair{std::string_view("nemogpt7bimproved"), std::string_view("nemogpt7b")},
      std::pair{std::string_view("llama4scout17b16e"), std::string_view("llama4scout")},
      std::pair{std::string_view("llama4maverick17b128e"), std::string_view("llama4maverick")},
      std::pair{std::string_view("minimaxm25"), std::string_view("minimaxm2")},
      std::pair{std::string_view("kimik25"), std::string_view("kimik2")},
      std::pair{std::string_view("glm5"), std::string_view("glm52")},
      std::pair{std::string_view("turing530b"), std::string_view("megatron530b")},
      std::pair{std::string_view("qwen3coder30ba3b"), std::string_view("qwen330ba3b")},
      std::pair{std::string_view("qwen25coder7b"), std::string_view("qwen257b")},
      std::pair{std::string_view("qwen25coder32b"), std::string_view("qwen2532b")},
      std::pair{std::string_view("deepseekv4flash"), std::string_view("deepseekv41flash")}};
  std::string wanted = squeezed(name);
  for (const std::string_view ending : {"instruct", "chat", "it", "base", "hf"}) {
    if (wanted.ends_with(ending) && wanted.size() > ending.size() + 3) wanted.resize(wanted.size() - ending.size());
  }
  for (const std::string_view start : {"metallama", "openai"}) {
    if (wanted.starts_with(start)) wanted.erase(0, start == "metallama" ? 4 : start.size());
  }
  for (const auto& [alias, meant] : kAliases) {
    if (wanted == alias) wanted = meant;
  }
  for (const ModelFacts& model : model_facts()) {
    if (squeezed(model.name) == wanted) return &model;
  }
  return nullptr;
}

std::optional<ModelFacts> facts_from_size(std::string_view name) {
  const NameSizes sizes = sizes_in_name(name);
  if (sizes.total <= 0) return std::nullopt;
  const bool wants_mixture = sizes.active > 0 && sizes.active < sizes.total;
  const ModelFacts* best = nullptr;
  double best_distance = 0;
  for (const ModelFacts& model : model_facts()) {
    // Shapes of before 2021 (plain MLPs, as many key-value heads as heads) say little about today's models.
    if ((model.experts > 0) != wants_mixture || !model.gated) continue;
    const ModelCount count = count_model(model);
    double distance = std::abs(std::log(static_cast<double>(count.total) / sizes.total));
    if (wants_mixture) distance += std::abs(std::log(static_cast<double>(count.active) / sizes.active));
    if (!best || distance < best_distance) {
      best = &model;
      best_distance = distance;
    }
  }
  if (!best) return std::nullopt;
  ModelFacts scaled = *best;
  scaled.name = std::string(name);
  scaled.total_given = static_cast<std::int64_t>(sizes.total);
  scaled.active_given = static_cast<std::int64_t>(wants_mixture ? sizes.active : sizes.total);
  scaled.vocabulary = 0;  // not known: embedding and head are counted like the rest
  scaled.source = fmt::format("sizes from the name; layers and heads as {}", best->name);
  scaled.guesses = {fmt::format("the shape: that of {}, scaled to the size in the name", best->name)};
  return scaled;
}

}  // namespace yoke::spec
