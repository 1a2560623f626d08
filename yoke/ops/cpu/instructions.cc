#include "yoke/ops/cpu/instructions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::ops::cpu {
#if defined(__x86_64__)
namespace {

// Whether the first cache takes as many lines under way as memory gives: AMD's since Zen 5 (family 26).
bool has_deep_first_cache() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__builtin_cpu_is("amd") || __get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  const unsigned family = (eax >> 8 & 15U) + (eax >> 20 & 255U);
  return family >= 26;
}

}  // namespace
#endif

std::vector<Kernels> usable_kernels() {
  std::vector<Kernels> usable;
#if defined(__x86_64__)
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vnni");
  if (has_avx512) {
    usable.push_back(*avx512_kernels());
    usable.insert(has_deep_first_cache() ? usable.begin() : usable.end(), *avx512_near_kernels());
    for (Kernels& kernels : usable) {
      if (!__builtin_cpu_supports("avx512bf16")) kernels.multiply_bf16 = nullptr;
    }
  }
  if (has_avx2) usable.push_back(*avx2_kernels());
#elif defined(__aarch64__)
  const bool has_dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  constexpr unsigned long kMatrices = HWCAP2_I8MM | HWCAP2_BF16;
  if (has_dot && (getauxval(AT_HWCAP2) & kMatrices) == kMatrices) usable.push_back(*neon_matrix_kernels());
  if (has_dot) usable.push_back(*neon_kernels());
#endif
  usable.push_back(*plain_kernels());
  return usable;
}

const Kernels& kernels_named(const std::string& name) {
  static const std::vector<Kernels> usable = usable_kernels();
  std::vector<std::string> names;
  for (const Kernels& kernels : usable) {
    if (name.empty() || name == kernels.name) return kernels;
    names.emplace_back(kernels.name);
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("this processor does not run instructions '{}'", printable(name, 40)),
              fmt::format("it runs: {}", fmt::join(names, ", ")));
}

}  // namespace yoke::ops::cpu
