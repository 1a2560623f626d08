#include "yoke/spec/image_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "yoke/base/fields.h"

namespace yoke::spec {
namespace {

constexpr std::int64_t kFluxParameters = 11'901'408'320;  // with the guidance embedder
constexpr std::int64_t kFluxGuidance = 10'229'760;
constexpr const char* kRecalledSize = "recalled, not checked";

ImageModelFacts flux(std::string name, std::int64_t transformer, std::int64_t text_tokens, int steps) {
  return {.name = std::move(name),
          .parts = {{"transformer", transformer, "transformer/config.json; 19 double and 38 single blocks of 3072"},
                    {"text encoder (CLIP-L)", 123'060'480, "config recalled; the sum is the published total"},
                    {"text encoder 2 (T5-XXL)", 4'762'310'656, "config recalled; the sum is the published total"},
                    {"VAE", 83'819'683, kRecalledSize}},
          .width = 3072,
          .blocks = 57,
          .heads = 24,
          .text_tokens = text_tokens,
          .encoder_flop = 5e12,
          .decoder_flop_1024 = 10e12,
          .steps = steps,
          .source = "black-forest-labs configs (stored copies)"};
}

std::vector<ImageModelFacts> all_image_models() {
  return {flux("flux.1-dev", kFluxParameters, 512, 28),
          flux("flux.1-schnell", kFluxParameters - kFluxGuidance, 256, 4),
          {.name = "sdxl",
           .parts = {{"unet", 2'567'463'684, kRecalledSize},
                     {"text encoder (CLIP-L)", 123'060'480, "config recalled; the sum is the published total"},
                     {"text encoder 2 (OpenCLIP bigG)", 694'659'840, kRecalledSize},
                     {"VAE", 83'653'863, kRecalledSize}},
           .flop_per_step_1024 = 12e12,
           .encoder_flop = 0.1e12,
           .decoder_flop_1024 = 10e12,
           .steps = 50,
           .source = "3 TMAC a forward at 1024 x 1024, twice for guidance; recalled"},
          {.name = "z-image-turbo",
           .parts = {{"transformer", 6'150'000'000, kRecalledSize}, {"text encoder", 4'000'000'000, kRecalledSize}},
           .flop_per_step_1024 = 60e12,
           .encoder_flop = 2e12,
           .decoder_flop_1024 = 10e12,
           .steps = 8,
           .source = "30 blocks of 3840; recalled"}};
}

std::int64_t size_of(const Document& config, std::string_view key) {
  const Document* const found = config.find(key);
  if (found == nullptr) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the key '{}' is missing", config.where, key),
                "is this the transformer/config.json of a FLUX.1 folder?");
  }
  const auto value = from_json<std::int64_t>(*found);
  if (value < 1 || value > 65536) refuse_field(*found, "a number from 1 to 65536");
  return value;
}

}  // namespace

std::span<const ImageModelFacts> image_model_facts() {
  static const std::vector<ImageModelFacts> kAll = all_image_models();
  return kAll;
}

const ImageModelFacts* find_image_model_facts(std::string_view name) {
  for (const ImageModelFacts& model : image_model_facts()) {
    const bool is_short = model.name.starts_with("flux.1-") && name == "flux-" + model.name.substr(7);
    if (model.name == name || is_short) return &model;
  }
  return nullptr;
}

std::vector<std::string> image_model_names() {
  std::vector<std::string> names;
  for (const ImageModelFacts& model : image_model_facts()) names.push_back(model.name);
  return names;
}

double image_tokens(double width, double height) { return width * height / 256; }

// A block multiplies 12 D^2 weights a token (double blocks hold two sets of 12 D^2, one for text and one for image
// tokens) and attends S to S: 2*12*D^2*S + 4*S^2*D.
double step_flop(const ImageModelFacts& model, double width, double height) {
  const double pixels = width * height / (1024.0 * 1024.0);
  if (model.blocks == 0) return model.flop_per_step_1024 * pixels;
  const double s = image_tokens(width, height) + static_cast<double>(model.text_tokens);
  const auto d = static_cast<double>(model.width);
  return static_cast<double>(model.blocks) * (24 * d * d * s + 4 * s * s * d);
}

std::int64_t image_parameters(const ImageModelFacts& model) {
  std::int64_t sum = 0;
  for (const ImagePart& part : model.parts) sum += part.parameters;
  return sum;
}

ImageModelFacts image_facts_from_config(const Document& config) {
  if (config.kind != Document::Kind::kMap) refuse_field(config, "a JSON object");
  const Document* const name = config.find("_class_name");
  if (name == nullptr || name->text != "FluxTransformer2DModel") {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: '{}' is not an image model that yoke can plan", config.where,
                            name != nullptr ? printable(name->text, 60) : "no _class_name"),
                "it plans FluxTransformer2DModel, and the image models of 'yoke plan models' by name");
  }
  const Document* const guidance = config.find("guidance_embeds");
  const bool is_dev = guidance != nullptr && guidance->text == "true";
  ImageModelFacts model = *find_image_model_facts(is_dev ? "flux.1-dev" : "flux.1-schnell");
  const std::int64_t doubles = size_of(config, "num_layers");
  const std::int64_t singles = size_of(config, "num_single_layers");
  model.heads = size_of(config, "num_attention_heads");
  model.width = model.heads * size_of(config, "attention_head_dim");
  if (model.width > 65536)
    throw Error(ErrorCode::kInvalid, fmt::format("{}: a width of {}", config.where, model.width));
  model.blocks = doubles + singles;
  // Weights of the blocks; embedders and the final layer are the remaining 0.1 B of FLUX.1, scaled by the width.
  model.parts.front().parameters = (36 * doubles + 15 * singles) * model.width * model.width + 30'000 * model.width;
  model.parts.front().source = config.where;
  model.name = is_dev ? "flux (dev)" : "flux (schnell)";
  return model;
}

}  // namespace yoke::spec
