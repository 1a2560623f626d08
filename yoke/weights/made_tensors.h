// What the files of a made model hold: each tensor with what fills it, in the order of the file; and what config.json
// says of the format. Inside of make_model.
#pragma once
#include <vector>

#include "yoke/base/document.h"
#include "yoke/weights/make_model.h"
#include "yoke/weights/random_fill.h"

namespace yoke::weights {

struct MadeTensor {
  TensorDeclaration declaration;
  Fill fill;
};

std::vector<MadeTensor> made_tensors(const MakeModelOptions& options);

std::string_view torch_name(MakeFormat format);                 // "bfloat16": of what is not quantized
Document quantization_config(const MakeModelOptions& options);  // null where nothing is quantized

}  // namespace yoke::weights
