// A model's shape to config.json and back, in the keys of transformers.
#pragma once
#include "yoke/base/document.h"
#include "yoke/spec/model_catalogue.h"

namespace yoke::spec {

// The shape that a model folder's config.json describes. kUnsupported for another architecture than those of
// ModelArchitecture (the hint lists them), kInvalid where sizes are missing or make no sense. Rope scalings other than
// llama3's are left out: what they mean, yoke/ops/rope.h knows.
ModelShape model_shape_from_config(const Document& config);

// As transformers writes it, without types and quantization. Both forms of the rope settings stand there, that of
// transformers 5 and that of before, so that any reader finds its own.
Document config_of_model_shape(const ModelShape& shape);

}  // namespace yoke::spec
