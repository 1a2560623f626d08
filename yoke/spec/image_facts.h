// Models that draw, as far as planning needs them: the parts that must be in memory, and the arithmetic of a step.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "yoke/base/document.h"

namespace yoke::spec {

struct ImagePart {
  std::string name;  // "transformer", "text encoder 2 (T5-XXL)"
  std::int64_t parameters = 0;
  std::string source;
};

struct ImageModelFacts {
  std::string name;
  std::vector<ImagePart> parts;  // the first is what runs in every step
  // A diffusion transformer: FLOP of a step follow from these. 0: flop_per_step_1024 is given instead.
  std::int64_t width = 0;
  std::int64_t blocks = 0;
  std::int64_t heads = 0;
  std::int64_t text_tokens = 0;
  double flop_per_step_1024 = 0;  // of models that are not described by blocks
  double encoder_flop = 0;        // of the text encoders, once
  double decoder_flop_1024 = 0;   // of the VAE at 1024 x 1024
  int steps = 28;                 // usual
  std::string source;
};

std::span<const ImageModelFacts> image_model_facts();
const ImageModelFacts* find_image_model_facts(std::string_view name);  // null when unknown
std::vector<std::string> image_model_names();

// Tokens of the image after packing 2 x 2 latents of 8 x 8 pixels.
double image_tokens(double width, double height);
// FLOP of one step for an image of so many pixels each way.
double step_flop(const ImageModelFacts& model, double width, double height);
std::int64_t image_parameters(const ImageModelFacts& model);

// From a diffusers folder's transformer/config.json. Error(kInvalid) where sizes are missing or absurd, kUnsupported
// for another class than FluxTransformer2DModel.
ImageModelFacts image_facts_from_config(const Document& config);

}  // namespace yoke::spec
