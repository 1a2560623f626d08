// Rotary position embedding (Su et al., "RoFormer", 2021), in the rail-split form of Hugging Face checkpoints: the pair
// (x[i], x[i + D/2]) is turned by the angle position * inverse_frequencies[i].
#pragma once
#include <cstdint>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::ops {

struct Rope {
  std::vector<float> inverse_frequencies;  // D / 2 of them
};

// From config.json: `rope_parameters`, or `rope_theta` and `rope_scaling` as before transformers 5. Scalings: default,
// linear, llama3; Error(kUnsupported) names these where it is another one.
Rope rope_from_config(const Document& config, std::int64_t head_width);

// Of pair i at one position. The angle is a product of floats, as in the implementation that models are trained with: a
// more exact angle would be another one at far positions.
struct RopeAngle {
  float cosine = 1;
  float sine = 0;
};
RopeAngle rope_angle(const Rope& rope, std::int64_t position, std::int64_t i);

}  // namespace yoke::ops
