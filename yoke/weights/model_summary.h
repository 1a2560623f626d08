// What a model folder is, from config.json and the headers of its weights alone: at once, however large it is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "yoke/base/units.h"
#include "yoke/spec/model_catalogue.h"
#include "yoke/weights/model_files.h"

namespace yoke::weights {

// All weights that are stored alike. Scales, zeros and the like belong to no parameters: they are a kind of their own.
struct StoredKind {
  std::string name;  // "int4", "fp8", "nvfp4", "bf16" …, "scales"
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  Bytes bytes{0};
};

struct ModelFileSize {
  std::string name;
  Bytes bytes{0};
};

struct ModelSummary {
  spec::ModelShape shape;
  std::string catalogued;            // the catalogue's names of this shape, with any number of layers; may be empty
  std::string quantization;          // "compressed-tensors", empty: none
  std::vector<StoredKind> kinds;     // the largest first
  std::vector<ModelFileSize> files;  // of the weights, by name
  std::int64_t parameters = 0;
  Bytes bytes{0};  // of all tensors
};

// kUnsupported for another architecture than those of the catalogue.
ModelSummary summarize_model(const ModelFiles& files);

}  // namespace yoke::weights
