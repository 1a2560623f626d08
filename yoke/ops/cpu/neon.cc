// 64-bit Arm with dot products (Armv8.2).
#include "yoke/ops/cpu/kernels.h"

#if defined(__aarch64__)
#include "yoke/ops/cpu/neon_lanes.h"

namespace yoke::ops::cpu {
namespace {

constexpr Kernels kTable = table_of<Neon>("neon");

}  // namespace

const Kernels* neon_kernels() { return &kTable; }

}  // namespace yoke::ops::cpu

#else

namespace yoke::ops::cpu {
const Kernels* neon_kernels() { return nullptr; }
}  // namespace yoke::ops::cpu

#endif
