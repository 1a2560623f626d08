// The formats of weights that a calibration measures, and the constants of plans that follow from each.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "yoke/plan/constants.h"
#include "yoke/weights/make_model.h"

namespace yoke::bench {

struct SampledFormat {
  std::string_view name;  // of the sample, and of the plan's format
  weights::MakeFormat format;
  std::int64_t int4_group;
  plan::Constant bandwidth;
  std::optional<plan::Constant> prefill;  // none: another format's holds
};
std::span<const SampledFormat> sampled_formats();

}  // namespace yoke::bench
