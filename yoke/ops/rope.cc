#include "yoke/ops/rope.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "yoke/base/check.h"
#include "yoke/base/error.h"
#include "yoke/base/fields.h"

namespace yoke::ops {
namespace {

const Document* present(const Document* map, std::string_view key) {
  const Document* const found = map == nullptr ? nullptr : map->find(key);
  return found != nullptr && found->kind != Document::Kind::kNull ? found : nullptr;
}

float positive(const Document& scaling, std::string_view key) {
  const Document* const found = present(&scaling, key);
  if (found == nullptr) {
    throw Error(ErrorCode::kInvalid, fmt::format("{}: the rope scaling needs '{}'", scaling.where, key));
  }
  const auto value = from_json<float>(*found);
  if (!(value > 0)) refuse_field(*found, "a positive number");
  return value;
}

// Llama 3.1: long waves are stretched by `factor`, short ones kept, those between interpolated.
float llama3_frequency(float inverse, const Document& scaling) {
  const float factor = positive(scaling, "factor");
  const float low = positive(scaling, "low_freq_factor");
  const float high = positive(scaling, "high_freq_factor");
  const float original = positive(scaling, "original_max_position_embeddings");
  const float wave = 2 * std::numbers::pi_v<float> / inverse;
  if (wave < original / high) return inverse;
  if (wave > original / low) return inverse / factor;
  const float smooth = (original / wave - low) / (high - low);
  return (1 - smooth) * inverse / factor + smooth * inverse;
}

std::string scaling_type(const Document* scaling) {
  for (const std::string_view key : {"rope_type", "type"}) {
    if (const Document* const type = present(scaling, key)) return from_json<std::string>(*type);
  }
  return "default";
}

}  // namespace

Rope rope_from_config(const Document& config, std::int64_t head_width) {
  YOKE_CHECK(head_width > 0 && head_width % 2 == 0, "{}", head_width);
  const Document* const parameters = present(&config, "rope_parameters");
  const Document* const scaling = parameters != nullptr ? parameters : present(&config, "rope_scaling");
  const Document* base = present(parameters, "rope_theta");
  if (base == nullptr) base = present(&config, "rope_theta");
  const float theta = base != nullptr ? from_json<float>(*base) : 10000.0F;
  if (!(theta > 0)) refuse_field(*base, "a positive number");
  const std::string type = scaling_type(scaling);
  if (type != "default" && type != "linear" && type != "llama3") {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: yoke does not know the rope scaling '{}'", scaling->where, printable(type, 40)),
                "it knows default, linear and llama3");
  }
  Rope rope;
  for (std::int64_t i = 0; i < head_width; i += 2) {
    const float inverse = 1 / std::pow(theta, static_cast<float>(i) / static_cast<float>(head_width));
    rope.inverse_frequencies.push_back(type == "linear"   ? inverse / positive(*scaling, "factor")
                                       : type == "llama3" ? llama3_frequency(inverse, *scaling)
                                                          : inverse);
  }
  return rope;
}

RopeAngle rope_angle(const Rope& rope, std::int64_t position, std::int64_t i) {
  const float angle = static_cast<float>(position) * rope.inverse_frequencies[static_cast<std::size_t>(i)];
  return {.cosine = std::cos(angle), .sine = std::sin(angle)};
}

}  // namespace yoke::ops
