// How weights are stored: three widths, because attention and the head often stay wider than the rest, and these decide
// the error of a plan (docs/planning.md).
//
//   find_format("nvfp4")->linear_bits == 4.5
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"
#include "yoke/spec/model_facts.h"

namespace yoke::plan {

enum class Arithmetic { kBf16, kFp8, kFp4 };  // what the matrix units multiply in

struct WeightFormat {
  std::string_view name;
  double linear_bits;  // experts and MLPs, scales included
  double attention_bits;
  double head_bits;
  double embedding_bits;
  Arithmetic arithmetic;
  std::string_view how;  // how the bits come about
  double group = 0;      // of int4: weights that share a scale; 0: not told
};

const WeightFormat* find_format(std::string_view name);  // null when unknown
std::vector<std::string> format_names();

// What the quantization_config and torch_dtype of a config.json say; null where they say nothing known.
const WeightFormat* format_of_config(const Document& config);

// Bytes of the whole checkpoint.
double stored_bytes(const spec::ModelCount& count, const spec::ModelFacts& model, const WeightFormat& format);

}  // namespace yoke::plan
