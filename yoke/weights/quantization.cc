#include "yoke/weights/quantization.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/error.h"
#include "yoke/base/fields.h"
#include "yoke/base/limits.h"
#include "yoke/base/text.h"

namespace yoke::weights {
namespace {

const Document* present(const Document& map, std::string_view key) {
  const Document* const found = map.find(key);
  return found != nullptr && found->kind != Document::Kind::kNull ? found : nullptr;
}

template <class T>
std::optional<T> optional_field(const Document& map, std::string_view key) {
  const Document* const found = present(map, key);
  if (found == nullptr) return std::nullopt;
  return from_json<T>(*found);
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
    sizes.push_back(from_json<std::int64_t>({.kind = Document::Kind::kPlain, .text = size, .where = found->where}));
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

}  // namespace

ModuleTargets::ModuleTargets(const std::vector<std::string>& targets, const Document& place, ModulePatternWork& work) {
  for (const std::string& target : targets) {
    if (target == "Linear") {
      all_ = true;
    } else if (!target.starts_with("re:")) {
      names_.insert(target);
    } else {
      if (++work.patterns > limits::kModulePatterns) {
        throw Error(ErrorCode::kInvalid, fmt::format("{}: the quantization section has more than {} patterns",
                                                     place.where, limits::kModulePatterns));
      }
      patterns_.push_back(
          Pattern::regex(std::string_view(target).substr(3), std::string(place.where),
                         {.bytes_max = limits::kModulePatternBytes, .speed = PatternSpeed::kInterpret}));
    }
  }
}

bool ModuleTargets::include(const std::string& module, ModulePatternWork& work) const {
  if (all_ || names_.contains(module)) return true;
  if (patterns_.empty()) return false;
  const std::int64_t questions = ++work.questions;
  const auto left = limits::kModulesTime + questions * limits::kModuleTime - std::chrono::nanoseconds(work.nanoseconds);
  CpuBudget budget(left, "the quantization section of config.json");
  budget.check_closely();
  const bool found = std::any_of(patterns_.begin(), patterns_.end(), [&](const Pattern& pattern) {
    budget.look();
    return pattern.begins(module);
  });
  work.nanoseconds += budget.used().count();
  return found;
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
    groups_.push_back({targets({"Linear"}, section), {.bits = 8, .block = read_block(section, "weight_block_size")}});
    std::vector<std::string> ignored;
    for (const std::string_view key : {"modules_to_not_convert", "ignored_layers"}) {
      for (std::string& name : list_field<std::string>(section, key)) ignored.push_back(std::move(name));
    }
    ignored_ = targets(ignored, section);
  } else if (method_ == "modelopt") {
    ignored_ = targets(list_field<std::string>(section, "ignore"), section);
  } else {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the weights are quantized by '{}', which yoke does not read", section.where,
                            printable(method_, 40)),
                "yoke reads compressed-tensors (int4, int8, fp8, nvfp4), gptq (int4), fp8 and modelopt (nvfp4)");
  }
}

void Quantization::read_compressed_tensors(const Document& config) {
  ignored_ = targets(list_field<std::string>(config, "ignore"), config);
  const Document* const groups = present(config, "config_groups");
  if (groups == nullptr) return;
  for (const auto& [name, group] : groups->fields) {
    const Document* const weights = present(group, "weights");
    if (weights == nullptr) continue;
    Group read{.targets = targets(list_field<std::string>(group, "targets"), group)};
    read.scheme.bits = optional_field<int>(*weights, "num_bits");
    read.scheme.symmetric = optional_field<bool>(*weights, "symmetric");
    const auto strategy = optional_field<std::string>(*weights, "strategy");
    if (strategy != "channel" && strategy != "tensor") read.scheme.group_size = read_group_size(*weights);
    read.scheme.block = read_block(*weights, "block_structure");
    groups_.push_back(std::move(read));
  }
}

void Quantization::read_gptq(const Document& config) {
  Group group{.targets = targets({"Linear"}, config)};
  group.scheme.bits = optional_field<int>(config, "bits");
  group.scheme.group_size = read_group_size(config);
  // The first version of the format stored every zero less one.
  if (optional_field<std::string>(config, "checkpoint_format") == "gptq_v2") gptq_zero_offset_ = 0;
  groups_.push_back(std::move(group));
}

bool Quantization::ignores(const std::string& module) const { return ignored_.include(module, *work_); }

const WeightScheme& Quantization::scheme(const std::string& module) const {
  static const WeightScheme unsaid;
  for (const Group& group : groups_) {
    if (group.targets.include(module, *work_)) return group.scheme;
  }
  return unsaid;
}

}  // namespace yoke::weights
