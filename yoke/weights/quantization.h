// What config.json says about quantized weights: `quantization_config`, or `compression_config` as it was called
// before. The stored tensors say most by themselves (their names, types and shapes decide the format); this tells what
// they do not: which modules were left alone, how a zero is stored, what was intended, so that a contradiction is
// reported.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/base/hash.h"
#include "yoke/base/pattern.h"

namespace yoke::weights {

// How a group of modules was quantized, as far as the file states it.
struct WeightScheme {
  std::optional<int> bits;
  std::optional<bool> symmetric;
  std::optional<std::int64_t> group_size;                    // nothing: per channel, per tensor, or not said
  std::pair<std::int64_t, std::int64_t> block = {128, 128};  // of fp8 block scales
};

// What all questions about modules together have cost: patterns come from a file. Any thread may ask.
struct ModulePatternWork {
  std::atomic<std::int64_t> nanoseconds{0};
  std::atomic<std::int64_t> questions{0};
  std::size_t patterns = 0;
};

// A list that names modules: by name, by "re:" and a regular expression that the name begins with, or by the class
// Linear, which is what all modules with quantized weights are. Patterns are compiled once, here.
class ModuleTargets {
 public:
  ModuleTargets() = default;
  // kUnsupported where a pattern cannot be read, kInvalid where there are too many in all.
  ModuleTargets(const std::vector<std::string>& targets, const Document& place, ModulePatternWork& work);
  bool include(const std::string& module, ModulePatternWork& work) const;

 private:
  bool all_ = false;
  std::unordered_set<std::string, SecretHash, std::equal_to<>> names_;
  std::vector<Pattern> patterns_;
};

class Quantization {
 public:
  Quantization() = default;  // nothing is quantized, or nothing is said
  // `config` is the whole of config.json, `legacy` a GPTQ quantize_config.json or null. Error where a method is named
  // that yoke does not know; its hint lists those it does.
  Quantization(const Document& config, const Document& legacy);

  const std::string& method() const { return method_; }  // "compressed-tensors", "gptq", "fp8" …; empty: none
  bool ignores(const std::string& module) const;
  const WeightScheme& scheme(const std::string& module) const;
  int gptq_zero_offset() const { return gptq_zero_offset_; }

 private:
  struct Group {
    ModuleTargets targets;
    WeightScheme scheme;
  };
  void read_section(const Document& section);
  void read_compressed_tensors(const Document& config);
  void read_gptq(const Document& config);
  ModuleTargets targets(const std::vector<std::string>& names, const Document& place) { return {names, place, *work_}; }

  std::string method_;
  ModuleTargets ignored_;
  std::vector<Group> groups_;
  int gptq_zero_offset_ = 1;
  std::shared_ptr<ModulePatternWork> work_ = std::make_shared<ModulePatternWork>();
};

}  // namespace yoke::weights
