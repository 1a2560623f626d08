// What config.json says about quantized weights: `quantization_config`, or `compression_config` as it was called
// before. The stored tensors say most by themselves (their names, types and shapes decide the format); this tells what
// they do not: which modules were left alone, how a zero is stored, what was intended, so that a contradiction is told.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/document.h"

namespace yoke {

// How a group of modules was quantized, as far as the file states it.
struct WeightScheme {
  std::optional<int> bits;
  std::optional<bool> symmetric;
  std::optional<std::int64_t> group_size;                    // nothing: per channel, per tensor, or not said
  std::pair<std::int64_t, std::int64_t> block = {128, 128};  // of fp8 block scales
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
    std::vector<std::string> targets;
    WeightScheme scheme;
  };
  void read_section(const Document& section);
  void read_compressed_tensors(const Document& config);
  void read_gptq(const Document& config);

  std::string method_;
  std::vector<std::string> ignored_;
  std::vector<Group> groups_;
  int gptq_zero_offset_ = 1;
};

// Whether a module is meant by one of these: its name, "re:" and a regular expression that its name begins with, or the
// class Linear, which is what all modules with quantized weights are.
bool is_meant(const std::string& module, const std::vector<std::string>& targets);

}  // namespace yoke
