#include "yoke/bench/sampled_formats.h"

#include <array>

namespace yoke::bench {
namespace {

using plan::Constant;
using weights::MakeFormat;

// int4 twice: a group of weights costs time beside that of its weights.
constexpr std::array kSampledFormats = {
    SampledFormat{"bf16", MakeFormat::kBf16, 0, Constant::kEtaCpu16, Constant::kPrefillCpu16},
    SampledFormat{"f32", MakeFormat::kF32, 0, Constant::kEtaCpu32, Constant::kPrefillCpu32},
    SampledFormat{"fp8", MakeFormat::kFp8, 0, Constant::kEtaCpu8, Constant::kPrefillCpu8},
    SampledFormat{"int4", MakeFormat::kW4a16, 128, Constant::kEtaCpu4, Constant::kPrefillCpu4},
    SampledFormat{"int4-g32", MakeFormat::kW4a16, 32, Constant::kEtaCpu4Group32, std::nullopt},
    SampledFormat{"nvfp4", MakeFormat::kNvfp4, 0, Constant::kEtaCpuFp4, Constant::kPrefillCpuFp4}};

}  // namespace

std::span<const SampledFormat> sampled_formats() { return kSampledFormats; }

}  // namespace yoke::bench
