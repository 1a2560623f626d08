// Powers that formulas of this folder use. Inside it numbers are doubles in SI units: seconds, bytes, FLOP.
#pragma once

namespace yoke::plan {

inline constexpr double kMicro = 1e-6;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;
inline constexpr double kGiB = 1073741824.0;

}  // namespace yoke::plan
