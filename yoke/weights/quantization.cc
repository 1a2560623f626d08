#include "yoke/weights/quantization.h"

#include <fmt/format.h>

#include <regex>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/text.h"

namespace yoke {
namespace {

const Document* present(const Document& map, std::string_view key) {
  const Document* const found = map.find(key);
  return found != nullptr && found->kind != Document::Kind::kNull ? found : nullptr;
}

template <class T>
std::optional<T> optional_field(const Document& map, std::string_view key) {
  const Document* const found = present(map, key);
  if (found == nullptr) return std::nullopt;
  return from_document<T>(*found);
}

template <class T>
std::vector<T> list_field(const Document& map, std::string_view key) {
  return optional_field<std::vector<T>>(map, key).value_or(std::vector<T>{});
}

// [128, 128], or "128x128" as older files have it.
std::vector<std::int64_t> block_sizes(const Document& map, std::string_view key) {
  const Document* const found = present(map, key);
  if (found == nullptr || !is_text(*found)) return list_field<std::int64_t>(map, key);
  std::vector<std::int64_t> sizes;
  for (const std::string& size : split(found->text, 'x')) {
    sizes.push_back(from_document<std::int64_t>({.kind = Document::Kind::kPlain, .text = size, .where = found->where}));
  }
  return sizes;
}

std::pair<std::int64_t, std::int64_t> read_block(const Document& map, std::string_view key) {
  const auto sizes = block_sizes(map, key);
  if (sizes.empty()) return WeightScheme{}.block;
  if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1) refuse_field(*map.find(key), "two positive sizes");
  return {sizes[0], sizes[1]};
}

std::optional<std::int64_t> read_group_size(const Document& map) {
  const auto size = optional_field<std::int64_t>(map, "group_size");
  if (!size || *size == -1) return std::nullopt;  // -1: one group, the whole channel
  if (*size < 1) refuse_field(*map.find("group_size"), "a positive number, or -1 for whole channels");
  return size;
}

const Document* quantization_section(const Document& config) {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    const Document* const section = present(config, key);
    if (section == nullptr) continue;
    // Once there were two sections in one: quantization and sparsity.
    const Document* const nested = present(*section, "quantization_config");
    return nested != nullptr ? nested : section;
  }
  return nullptr;
}

// libstdc++'s polynomial matcher: a pattern from a file must not take exponential time.
constexpr auto kPattern = std::regex::ECMAScript | std::regex_constants::__polynomial;

bool begins_with_pattern(const std::string& text, const std::string& pattern) {
  try {
    return std::regex_search(text, std::regex(pattern, kPattern), std::regex_constants::match_continuous);
  } catch (const std::regex_error&) {
    throw Error(
        ErrorCode::kInvalid,
        fmt::format("the quantization section names the pattern '{}', which yoke cannot read", printable(pattern, 80)));
  }
}

}  // namespace

bool is_meant(const std::string& module, const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    if (target == module || target == "Linear") return true;
    if (target.starts_with("re:") && begins_with_pattern(module, target.substr(3))) return true;
  }
  return false;
}

Quantization::Quantization(const Document& config, const Document& legacy) {
  if (const Document* const section = quantization_section(config)) {
    read_section(*section);
  } else if (legacy.kind == Document::Kind::kMap) {
    method_ = "gptq";
    read_gptq(legacy);
  }
}

void Quantization::read_section(const Document& section) {
  method_ = optional_field<std::string>(section, "quant_method").value_or("compressed-tensors");
  if (method_ == "compressed-tensors") {
    read_compressed_tensors(section);
  } else if (method_ == "gptq") {
    read_gptq(section);
  } else if (method_ == "fp8" || method_ == "fbgemm_fp8") {
    groups_.push_back({{"Linear"}, {.bits = 8, .block = read_block(section, "weight_block_size")}});
    for (const std::string_view key : {"modules_to_not_convert", "ignored_layers"}) {
      for (std::string& name : list_field<std::string>(section, key)) ignored_.push_back(std::move(name));
    }
  } else if (method_ == "modelopt") {
    ignored_ = list_field<std::string>(section, "ignore");
  } else {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the weights are quantized by '{}', which yoke does not read", section.where,
                            printable(method_, 40)),
                "yoke reads compressed-tensors (int4, fp8, nvfp4), gptq (int4), fp8 and modelopt (nvfp4)");
  }
}

void Quantization::read_compressed_tensors(const Document& config) {
  ignored_ = list_field<std::string>(config, "ignore");
  const Document* const groups = present(config, "config_groups");
  if (groups == nullptr) return;
  for (const auto& [name, group] : groups->fields) {
    const Document* const weights = present(group, "weights");
    if (weights == nullptr) continue;
    Group read{.targets = list_field<std::string>(group, "targets")};
    read.scheme.bits = optional_field<int>(*weights, "num_bits");
    read.scheme.symmetric = optional_field<bool>(*weights, "symmetric");
    const auto strategy = optional_field<std::string>(*weights, "strategy");
    if (strategy != "channel" && strategy != "tensor") read.scheme.group_size = read_group_size(*weights);
    read.scheme.block = read_block(*weights, "block_structure");
    groups_.push_back(std::move(read));
  }
}

void Quantization::read_gptq(const Document& config) {
  Group group{.targets = {"Linear"}};
  group.scheme.bits = optional_field<int>(config, "bits");
  group.scheme.group_size = read_group_size(config);
  // The first version of the format stored every zero less one.
  if (optional_field<std::string>(config, "checkpoint_format") == "gptq_v2") gptq_zero_offset_ = 0;
  groups_.push_back(std::move(group));
}

bool Quantization::ignores(const std::string& module) const { return is_meant(module, ignored_); }

const WeightScheme& Quantization::scheme(const std::string& module) const {
  static const WeightScheme unsaid;
  for (const Group& group : groups_) {
    if (is_meant(module, group.targets)) return group.scheme;
  }
  return unsaid;
}

}  // namespace yoke
